#include <fmt/format.h>

#include <map>

#include "plugin/cli/choice_option.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/decode_input.h"
#include "plugin/cli/decode_printer.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {
namespace {

struct DecodeOptions {
  DecodeRequest request;
  std::string decoder = "flow";
  std::string items = "addresses";
  std::string resume = "psb";
  std::string bundle_path;
  pt::TimingConfig timing;
  std::vector<std::string> filters, stops;
  bool strict = false;
};

const std::map<std::string, DecodeItems> kItems = {{"addresses", DecodeItems::kAddresses},
                                                   {"instructions", DecodeItems::kInstructions},
                                                   {"records", DecodeItems::kRecords},
                                                   {"events", DecodeItems::kEvents}};

// One that may come several times takes one word each: the next one may be the trace.
void add_options(CLI::App& app, DecodeOptions& options) {
  auto* trace = app.add_option("TRACE", options.bundle_path,
                               "a trace bundle (trace.json, or its folder), or PT bytes");
  app.add_option("--pt", options.request.trace_path, "the raw bytes of Intel PT, or a pipe")
      ->type_name("FILE")
      ->excludes(trace);
  app.add_option("--code", options.request.codes,
                 "code: an ELF file, or any file with the address of its first byte; may be a "
                 "pipe; FILE:FIRST-END@ADDRESS, or without END, is a piece of one")
      ->type_name("FILE[@ADDRESS]")
      ->allow_extra_args(false);
  app.add_option("--cpu", options.request.cpu,
                 "the processor that wrote the trace, for its errata, or none")
      ->type_name("FAMILY/MODEL/STEPPING");
  add_choice(app, "--decoder", options.decoder, "which decoder", {"flow", "libipt"});
  add_choice(app, "--print", options.items, "what to print, one item a line",
             {"addresses", "instructions", "records", "events"});
  add_choice(app, "--resume", options.resume,
             "where to go on behind code that is not known or does not fit: at the next PSB, as "
             "ptxed does, or at the next event that says where, as histories do",
             {"psb", "address"});
  app.add_option("--tid", options.request.tid, "of a bundle only this thread")->type_name("TID");
  app.add_option("--mtc-period", options.timing.mtc_period,
                 "an MTC packet comes every 2^N crystal clock ticks")
      ->type_name("N")
      ->check(number_between(0, 15));
  app.add_option("--nominal-ratio", options.timing.nominal_ratio,
                 "core cycles per bus cycle at the nominal frequency")
      ->type_name("N");
  app.add_option("--cpuid-15-eax", options.timing.cpuid_15_eax, "denominator of TSC to crystal")
      ->type_name("N");
  app.add_option("--cpuid-15-ebx", options.timing.cpuid_15_ebx, "numerator of TSC to crystal")
      ->type_name("N");
  app.add_option("--filter", options.filters,
                 "only code there was traced; needed to work around an erratum")
      ->type_name("FIRST-LAST")
      ->allow_extra_args(false);
  app.add_option("--stop", options.stops, "tracing stopped where code there was reached")
      ->type_name("FIRST-LAST")
      ->allow_extra_args(false);
  app.add_flag("--strict", options.strict, "exit with status 6 when there are gaps");
}

std::unique_ptr<pt::Decoder> make_decoder(const std::string& name, const DecodeJob& job) {
  return name == "flow" ? pt::make_flow_decoder(*job.code, job.config)
                        : pt::make_libipt_decoder(*job.code, job.config);
}

// Hands on what a decoder finds, until Ctrl-C: then it throws, as what cannot print does.
class WhilePrinting final : public pt::Sink {
 public:
  struct Interrupted {};

  WhilePrinting(pt::Sink& printer, Printing& printing) : printer_(printer), printing_(printing) {}

  pt::Detail detail() const override { return printer_.detail(); }
  void instructions(std::span<const Instruction> run, const pt::RunState& state) override {
    go_on().instructions(run, state);
  }
  void branches(const pt::BranchRun& run) override { go_on().branches(run); }
  void event(const pt::Event& event) override { go_on().event(event); }
  void gap(const pt::Gap& gap) override { go_on().gap(gap); }

 private:
  pt::Sink& go_on() {
    if (!printing_.goes_on()) throw Interrupted();
    return printer_;
  }

  pt::Sink& printer_;
  Printing& printing_;
};

// Decodes one trace and returns the number of its gaps.
std::uint64_t decode(DecodeJob& job, const DecodeOptions& options, JsonForm json,
                     Printing& printing, std::FILE* out) {
  job.config.timing = options.timing;
  job.config.resumption =
      options.resume == "psb" ? pt::Resumption::kAtPsb : pt::Resumption::kAtAddress;
  const DecodePrinterConfig config{
      .items = kItems.at(options.items),
      .json = json,
      .out = out,
      .name = job.name,
      .decoder = options.decoder,
      .unknown_cpu = !options.request.cpu.empty() && !pt::is_known(job.config.cpu),
  };
  auto printer = make_decode_printer(config, *job.code);
  WhilePrinting sink(*printer, printing);
  try {
    make_decoder(options.decoder, job)->decode(job.trace, sink);
  } catch (const WhilePrinting::Interrupted&) {  // what it has printed is whole
  }
  printer->finish();
  return printer->gaps();
}

// Documents of several traces are a list in one.
std::uint64_t decode_all(std::vector<DecodeJob>& jobs, const DecodeOptions& options, JsonForm json,
                         std::FILE* out) {
  const bool is_list = json == JsonForm::kDocument && jobs.size() > 1;
  std::uint64_t gaps = 0;
  Printing printing(out);
  if (is_list)
    fmt::print(out, R"({{"schema":"tailtrace.decodes/1","traces":[)"
                    "\n");
  for (DecodeJob& job : jobs) {
    if (!printing.goes_on()) break;
    if (is_list && &job != &jobs.front()) fmt::print(out, ",");
    gaps += decode(job, options, json, printing, out);
  }
  if (is_list) fmt::print(out, "]}}\n");
  return gaps;
}

Result<int> run_decode(DecodeOptions options, JsonForm json, const Invocation& invocation) {
  if (options.request.trace_path.empty()) options.request.trace_path = options.bundle_path;
  if (options.request.trace_path.empty())
    return fail(ErrorCode::kUsage, "cannot decode: no trace is named", "",
                "tailtrace decode --pt FILE --code FILE@ADDRESS");
  if (options.decoder == "libipt" && options.resume != "psb")
    return fail(ErrorCode::kUsage, "cannot decode: libipt goes on at PSBs only", "",
                "leave out --resume, or --decoder");
  auto input = open_decode_input(options.request);
  if (!input) return fail(input.error());
  auto filters = parse_filters(options.filters, options.stops);
  if (!filters) return fail(filters.error());
  for (const std::string& note : input->notes) fmt::print(invocation.err, "note: {}\n", note);
  for (DecodeJob& job : input->jobs) job.config.filters = *filters;
  const std::uint64_t gaps = decode_all(input->jobs, options, json, invocation.out);
  if (gaps == 0 || !options.strict) return kExitDone;
  return fail(ErrorCode::kGaps, fmt::format("the trace has {} gap{}", gaps, gaps == 1 ? "" : "s"));
}

}  // namespace

Command decode_command() {
  return {
      .name = "decode",
      .summary = "Decode raw Intel PT bytes with the code they ran",
      .usage = "[OPTIONS] (TRACE | --pt FILE) [--code FILE[@ADDRESS]]...",
      .examples =
          {
              {"tailtrace decode --pt trace.bin --code ./program", "every address executed"},
              {"tailtrace decode --pt t.bin --code code.bin@0x1000 --print=instructions",
               "a raw piece of code"},
              {"tailtrace decode trace.json --print=records", "the branches of LLDB's bundle"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<DecodeOptions>();
        add_options(app, *options);
        auto output = add_output_options(app);
        return [options, output](const Invocation& invocation) {
          return run_decode(*options, output->json, invocation);
        };
      },
      .take_program = {},
      .details =
          "Each executed instruction is a line with its address; what happened in between is a "
          "line in brackets: [enabled], [disabled], [resumed], [interrupt], [overflow], [tsx "
          "begin], [ptwrite: PAYLOAD] and so on. What cannot be decoded is a line [OFFSET, IP: "
          "error: WHY]; decoding goes on at the next point where it can. An ELF file's executable "
          "segments are taken from where the file says; with an address, its lowest segment lies "
          "there. The traces of processors in a bundle are decoded as they are; where several "
          "processes ran there, or --tid names a thread, they are taken apart into threads.",
  };
}

}  // namespace tailtrace
