#include "plugin/cli/decode_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "decoder/base/text.h"
#include "decoder/bundle/cpu_traces.h"
#include "decoder/bundle/lldb_bundle.h"
#include "decoder/bundle/trace_file.h"
#include "decoder/code/elf_code.h"
#include "decoder/perf_data/file.h"

namespace tailtrace {
namespace {

Result<pt::AddressFilter> parse_filter(const std::string& text, pt::AddressFilter::Kind kind) {
  std::size_t dash = text.find('-');
  auto first = parse_number(std::string_view(text).substr(0, dash));
  auto last = dash == std::string::npos ? std::nullopt
                                        : parse_number(std::string_view(text).substr(dash + 1));
  if (!first || !last || *last < *first)
    return fail(ErrorCode::kUsage, "`" + text + "` is no range of addresses", "",
                "FIRST-LAST, as in --filter=0x401000-0x401fff");
  return pt::AddressFilter{kind, {*first}, {*last}};
}

// Takes ":FIRST" or ":FIRST-END" away from the end of a name.
std::optional<CodeFile::Piece> take_piece(std::string& path) {
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string_view text = std::string_view(path).substr(colon + 1);
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  CodeFile::Piece piece{first.value_or(0), std::nullopt};
  if (dash != text.npos) piece.end_bytes = parse_number(text.substr(dash + 1));
  if (!first || (dash != text.npos && !piece.end_bytes)) return std::nullopt;
  path.resize(colon);
  return piece;
}

Result<ByteSpan> find_piece(ByteSpan file, const CodeFile::Piece& piece, const std::string& path) {
  const std::uint64_t first = piece.first_bytes, end = piece.end_bytes.value_or(file.size());
  if (first < end && end <= file.size()) return file.subspan(first, end - first);
  return fail(ErrorCode::kUsage,
              fmt::format("{} has no bytes from {:#x} to {:#x}", path, first, end),
              fmt::format("it is {:#x} bytes long", file.size()));
}

bool looks_like_json(ByteSpan bytes) {
  auto is_space = [](std::uint8_t b) { return b == ' ' || b == '\n' || b == '\r' || b == '\t'; };
  auto first = std::find_if_not(bytes.begin(), bytes.end(), is_space);
  return first != bytes.end() && *first == '{';
}

DecodeJob job_of(std::string name, MappedFile trace, std::shared_ptr<const CodeImage> code) {
  auto owner = std::make_shared<const MappedFile>(std::move(trace));
  return {std::move(name), owner, owner->bytes(), std::move(code), {}};
}

// The files of a bundle, opened.
class BundleOpener {
 public:
  BundleOpener(const DecodeRequest& request, const LldbBundle& bundle)
      : request_(request), bundle_(bundle) {}

  Result<DecodeInput> open();

 private:
  Result<pt::DecoderConfig> config() const;
  Result<std::shared_ptr<CodeImage>> code_of(std::span<const LldbModule> modules);
  void add_module(CodeImage& image, const LldbModule& module);
  bool is_wanted(std::int32_t tid) const { return !request_.tid || *request_.tid == tid; }
  Result<void> add_threads(const LldbProcess& process);
  Result<void> add_threads_by_cpu();
  Result<void> add_cpus();
  Result<void> add_processors();
  Result<void> add_file(std::string name, const std::string& trace_path,
                        std::shared_ptr<const CodeImage> code);
  Result<void> add_job(DecodeJob job);
  void note(const Error& problem) { note(problem.to_line()); }
  void note(std::string line);

  const DecodeRequest& request_;
  const LldbBundle& bundle_;
  DecodeInput input_;
};

pt::DecoderConfig config_for(const pt::Cpu& cpu) {
  pt::DecoderConfig config;
  config.cpu = cpu;
  config.errata = pt::errata_of(cpu);
  return config;
}

Result<pt::DecoderConfig> BundleOpener::config() const {
  if (request_.cpu.empty()) return config_for(bundle_.cpu);
  auto cpu = parse_cpu(request_.cpu);
  if (!cpu) return fail(cpu.error());
  return config_for(*cpu);
}

void BundleOpener::add_module(CodeImage& image, const LldbModule& module) {
  auto added = add_elf_code(image, module.path, module.load_address);
  // Code that is missing becomes gaps; the rest can still be read.
  if (!added) note(added.error());
}

// Once: what several threads lack is told of each.
void BundleOpener::note(std::string line) {
  if (std::ranges::find(input_.notes, line) == input_.notes.end())
    input_.notes.push_back(std::move(line));
}

// With what the command line adds.
Result<std::shared_ptr<CodeImage>> BundleOpener::code_of(std::span<const LldbModule> modules) {
  auto image = std::make_shared<CodeImage>();
  for (const LldbModule& module : modules) add_module(*image, module);
  for (const std::string& code : request_.codes)
    if (auto added = add_code_file(*image, parse_code_file(code)); !added)
      return fail(added.error());
  return image;
}

Result<void> BundleOpener::add_job(DecodeJob job) {
  auto config = this->config();
  if (!config) return fail(config.error());
  if (auto unknown = note_of_cpu(config->cpu)) note(std::move(*unknown));
  job.config = *config;
  input_.jobs.push_back(std::move(job));
  return {};
}

Result<void> BundleOpener::add_file(std::string name, const std::string& trace_path,
                                    std::shared_ptr<const CodeImage> code) {
  auto trace = open_trace(trace_path);
  if (!trace) return fail(trace.error());
  return add_job(job_of(std::move(name), std::move(*trace), std::move(code)));
}

Result<void> BundleOpener::add_threads(const LldbProcess& process) {
  auto code = code_of(process.modules);
  if (!code) return fail(code.error());
  for (const LldbThread& thread : process.threads) {
    const std::int32_t tid = thread.thread.tid;
    if (thread.trace_path.empty() || !is_wanted(tid)) continue;
    if (auto added = add_file(fmt::format("thread {}", tid), thread.trace_path, *code); !added)
      return added;
  }
  return {};
}

// The processors' traces, taken apart into the threads of the processes that the bundle names.
Result<void> BundleOpener::add_threads_by_cpu() {
  auto cpus = CpuTraces::open(bundle_.cpus, *bundle_.clock);
  if (!cpus) return fail(cpus.error());
  for (const LldbProcess& process : bundle_.processes) {
    auto code = code_of(process.modules);
    if (!code) return fail(code.error());
    for (ThreadId thread : cpus->threads()) {
      if (thread.pid != process.pid || !is_wanted(thread.tid)) continue;
      auto trace = std::make_shared<const ThreadTrace>(cpus->of_thread(thread.tid));
      for (const Error& problem : cpus->problems_of(*trace, thread.tid)) note(problem);
      std::string name = fmt::format("thread {}", thread.tid);
      if (auto added = add_job({std::move(name), trace, trace->bytes, *code, {}}); !added)
        return added;
    }
  }
  return {};
}

// The processors' traces as they are: all that ran there had one code, or was the kernel.
Result<void> BundleOpener::add_cpus() {
  auto code =
      bundle_.kernel ? code_of({&*bundle_.kernel, 1}) : code_of(bundle_.processes.front().modules);
  if (!code) return fail(code.error());
  for (const LldbCpu& cpu : bundle_.cpus)
    if (auto added = add_file(fmt::format("cpu {}", cpu.id), cpu.trace_path, *code); !added)
      return added;
  return {};
}

Result<void> BundleOpener::add_processors() {
  if (bundle_.cpus.empty()) return {};
  if (bundle_.kernel) return request_.tid ? Result<void>{} : add_cpus();
  return request_.tid || bundle_.processes.size() != 1 ? add_threads_by_cpu() : add_cpus();
}

Result<DecodeInput> BundleOpener::open() {
  for (const LldbProcess& process : bundle_.processes)
    if (auto added = add_threads(process); !added) return fail(added.error());
  if (auto added = add_processors(); !added) return fail(added.error());
  if (input_.jobs.empty())
    return fail(ErrorCode::kUsage, "cannot decode " + request_.trace_path,
                request_.tid ? "it has no such thread" : "it names no trace");
  if (input_.jobs.size() == 1) input_.jobs.front().name.clear();
  return std::move(input_);
}

}  // namespace

Result<pt::Cpu> parse_cpu(const std::string& text) {
  if (text == "none") return pt::Cpu{};
  std::array<std::uint64_t, 3> numbers{};
  std::size_t count = 0;
  for (std::string_view rest = text; count < numbers.size(); ++count) {
    std::size_t slash = rest.find('/');
    auto number = parse_number(rest.substr(0, slash));
    if (!number) break;
    numbers[count] = *number;
    if (slash == std::string_view::npos) {
      bool fits = numbers[0] <= 0xffff && numbers[1] <= 0xff && numbers[2] <= 0xff;
      if (count == 0 || !fits) break;
      return pt::Cpu{static_cast<std::uint16_t>(numbers[0]), static_cast<std::uint8_t>(numbers[1]),
                     static_cast<std::uint8_t>(numbers[2])};
    }
    rest.remove_prefix(slash + 1);
  }
  return fail(ErrorCode::kUsage, "`" + text + "` is no processor", "",
              "--cpu=FAMILY/MODEL/STEPPING, as in --cpu=6/85/4, or --cpu=none");
}

std::optional<std::string> note_of_cpu(const pt::Cpu& cpu) {
  if (pt::is_known(cpu)) return std::nullopt;
  return fmt::format(
      "processor {}/{}/{} is not known: if it has errata, they are not worked around", cpu.family,
      cpu.model, cpu.stepping);
}

Result<std::array<pt::AddressFilter, 4>> parse_filters(const std::vector<std::string>& filters,
                                                       const std::vector<std::string>& stops) {
  std::array<pt::AddressFilter, 4> all;
  if (filters.size() + stops.size() > all.size())
    return fail(ErrorCode::kUsage, "more ranges of addresses than processors have",
                "a trace has four filters at most");
  auto out = all.begin();
  for (const auto& [texts, kind] : {std::pair(&filters, pt::AddressFilter::Kind::kFilter),
                                    std::pair(&stops, pt::AddressFilter::Kind::kStop)})
    for (const std::string& text : *texts) {
      auto filter = parse_filter(text, kind);
      if (!filter) return fail(filter.error());
      *out++ = *filter;
    }
  return all;
}

CodeFile parse_code_file(const std::string& text) {
  std::size_t at = text.rfind('@');
  if (at == std::string::npos) return {text, {}, {}};
  auto address = parse_number(std::string_view(text).substr(at + 1));
  if (!address) return {text, {}, {}};
  CodeFile file{text.substr(0, at), Address{*address}, {}};
  // A file may have a name that looks like it.
  if (std::error_code error; !std::filesystem::exists(file.path, error))
    file.piece = take_piece(file.path);
  return file;
}

Result<void> add_code_file(CodeImage& image, const CodeFile& file) {
  auto mapped = open_named_file(file.path);
  if (!mapped) {
    Error error = mapped.error();
    // ptxed has a colon there.
    bool meant_address = !file.at && file.path.find_first_of("@:") != std::string::npos;
    if (meant_address) error.fix = "--code=FILE@ADDRESS, as in --code=page.bin@0x401000";
    return fail(std::move(error));
  }
  auto code = std::make_shared<const MappedFile>(std::move(*mapped));
  if (code->bytes().empty())
    return fail(ErrorCode::kBadInput, "cannot read " + file.path, "it is empty");
  if (file.piece) {
    auto bytes = find_piece(code->bytes(), *file.piece, file.path);
    return bytes ? image.add(*file.at, *bytes, code) : fail(bytes.error());
  }
  if (is_elf(code->bytes())) {
    // Loaded at 0 means: where the file says.
    bool moved = file.at && !file.at->is_null();
    auto added = add_elf_code(image, code, file.path, moved ? file.at : std::nullopt);
    // Memory may hold the header of a file without being one.
    if (added || !file.at) return added;
  }
  if (file.at) return image.add(*file.at, code->bytes(), code);
  return fail(ErrorCode::kUsage, "cannot use " + file.path + " as code",
              "it is no ELF file, so it does not say where it belongs",
              "--code=" + file.path + "@0x1000");
}

Result<void> refuse_perf_data(const std::string& path, ByteSpan bytes) {
  if (!perf::is_perf_data(bytes)) return {};
  return fail(ErrorCode::kBadInput, "cannot read " + path + " as Intel PT",
              "it is a file of `perf record`, which has more than that in it",
              "tailtrace history " + path);
}

Result<DecodeInput> open_decode_input(DecodeRequest request) {
  if (std::error_code ignored; std::filesystem::is_directory(request.trace_path, ignored))
    request.trace_path += fmt::format("/{}", kLldbBundleName);
  auto trace = open_named_file(request.trace_path);
  if (!trace) return fail(trace.error());
  if (auto other = refuse_perf_data(request.trace_path, trace->bytes()); !other)
    return fail(other.error());
  if (looks_like_json(trace->bytes())) {
    auto bundle = read_lldb_bundle(request.trace_path);
    if (!bundle) return fail(bundle.error());
    return BundleOpener(request, *bundle).open();
  }
  if (request.tid)
    return fail(ErrorCode::kUsage, "cannot decode one thread of " + request.trace_path,
                "it has the bytes of Intel PT, which do not tell threads apart", "leave out --tid");
  pt::Cpu cpu;
  if (!request.cpu.empty()) {
    auto parsed = parse_cpu(request.cpu);
    if (!parsed) return fail(parsed.error());
    cpu = *parsed;
  }
  auto image = std::make_shared<CodeImage>();
  for (const std::string& code : request.codes)
    if (auto added = add_code_file(*image, parse_code_file(code)); !added)
      return fail(added.error());
  DecodeInput input;
  if (auto unknown = note_of_cpu(cpu)) input.notes.push_back(std::move(*unknown));
  input.jobs.push_back(job_of("", std::move(*trace), std::move(image)));
  input.jobs.back().config = config_for(cpu);
  return input;
}

}  // namespace tailtrace
