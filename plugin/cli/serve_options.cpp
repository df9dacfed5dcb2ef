#include "plugin/cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plugin/cli/choice_option.h"
#include "plugin/cli/units.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxHandover_instructions = 1ull << 32;

tl::unexpected<Error> misused(std::string why) {
  return fail(ErrorCode::kUsage, "cannot understand the arguments of tailtrace serve",
              std::move(why), "tailtrace help serve");
}

const std::vector<std::string> kEngines = {"auto", "pt", "bts", "lbr", "qemu", "step"};

EngineChoice engine_choice(const std::string& name) {
  if (name == "pt") return EngineChoice::kPt;
  if (name == "bts") return EngineChoice::kBts;
  if (name == "lbr") return EngineChoice::kLbr;
  if (name == "qemu") return EngineChoice::kQemu;
  if (name == "step") return EngineChoice::kStep;
  return EngineChoice::kAuto;
}

Result<std::uint64_t> parse_handover(const std::string& text) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0 ||
      number > kMaxHandover_instructions)
    return fail(ErrorCode::kUsage, fmt::format("cannot hand over `{}` instructions", text),
                fmt::format("it is no number from 1 to {}", kMaxHandover_instructions),
                "--handover=1000000");
  return number;
}

Result<int> parse_pid(const std::string& text) {
  int pid = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0)
    return misused(fmt::format("`{}` is no process id", text));
  return pid;
}

// Puts the words behind COMM where the mode wants them.
Result<void> place(std::vector<std::string> words, bool attach, ServeOptions& serve) {
  if (attach) {
    if (words.size() != 1) return misused("--attach takes COMM and one process id");
    auto pid = parse_pid(words.front());
    if (!pid) return fail(std::move(pid.error()));
    serve.attach_pid = *pid;
    return {};
  }
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty() && !serve.multi)
    return misused("there is no program behind COMM, and neither --attach nor --multi");
  serve.program = std::move(words);
  return {};
}

std::vector<std::string> gdbservers_own(const ServeWords& words) {
  std::vector<std::string> own;
  if (words.debug) own.push_back("--debug");
  if (words.remote_debug) own.push_back("--remote-debug");
  if (words.event_loop_debug) own.push_back("--event-loop-debug");
  if (!words.debug_format.empty()) own.push_back("--debug-format=" + words.debug_format);
  if (!words.disable_packet.empty()) own.push_back("--disable-packet=" + words.disable_packet);
  return own;
}

// COMM is the first word that is neither an option nor an option's value.
std::vector<std::string>::iterator find_comm(std::vector<std::string>& args) {
  CLI::App app;
  ServeWords words;
  add_serve_options(app, words);
  auto takes_next_word = [&](const std::string& word) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
  };
  auto word = args.begin();
  while (word != args.end() && word->starts_with("--") && *word != "--")
    word += std::min<std::ptrdiff_t>(takes_next_word(*word) ? 2 : 1, args.end() - word);
  return word;
}

}  // namespace

bool is_engine(const std::string& name) {
  return std::ranges::find(kEngines, name) != kEngines.end();
}

void add_recording_options(CLI::App& app, RecordingOptions& options) {
  add_choice(app, "--engine", options.engine,
             "what records; auto: hardware, else qemu (run) or steps (serve)", kEngines);
  app.add_option("--ring", options.ring,
                 "what is kept of each thread: records, or a size such as 64MiB (2MiB)")
      ->type_name("N");
  app.add_option("--handover", options.handover,
                 "instructions the debugger is given at most (GDB: 1000000 as PT, 300000 as BTS; "
                 "LLDB: 100000)")
      ->type_name("N");
  add_choice(app, "--since", options.since,
             "where the history begins: `record btrace` (enable) or the program's start (qemu)",
             {"enable", "start"});
  app.add_option("--keep", options.keep, "leave the recording in this new folder")
      ->type_name("DIR");
  app.add_option("--gdbserver", options.gdbserver, "the gdbserver to use")->type_name("PROGRAM");
  app.add_option("--qemu", options.qemu, "the qemu-x86_64 to use")->type_name("PROGRAM");
}

Result<void> apply(const RecordingOptions& recording, ServeOptions& serve) {
  serve.engine = engine_choice(recording.engine);
  serve.since_start = recording.since == "start";
  serve.keep_folder = recording.keep;
  if (!recording.gdbserver.empty()) serve.gdbserver = recording.gdbserver;
  if (!recording.qemu.empty()) serve.qemu = recording.qemu;
  if (!recording.ring.empty()) {
    auto records = parse_ring_records(recording.ring);
    if (!records) return fail(std::move(records.error()));
    serve.ring_records = *records;
  }
  if (!recording.handover.empty()) {
    auto instructions = parse_handover(recording.handover);
    if (!instructions) return fail(std::move(instructions.error()));
    serve.handover_instructions_pt = serve.handover_instructions_bts = *instructions;
    serve.handover_instructions_lldb = *instructions;
    serve.handover_is_said = true;
  }
  return {};
}

void add_serve_options(CLI::App& app, ServeWords& words) {
  app.prefix_command();
  app.add_flag("--once", words.once, "end with the first connection");
  app.add_flag("--multi", words.multi, "stay without a program: the debugger starts them");
  app.add_flag("--attach", words.attach, "COMM PID: serve a running process");
  add_recording_options(app, words.recording);
  app.add_flag("--allow-remote", words.allow_remote, "listen on other than loopback addresses");
  // Taken out before the parser sees it; here for the help.
  app.add_flag("--wrapper", words.wrapper,
               "--wrapper WORDS... --: start the program through WORDS");
  app.add_flag("--startup-with-shell,!--no-startup-with-shell", words.startup_with_shell,
               "start the program through a shell (default), or not");
  app.add_flag("--disable-randomization,!--no-disable-randomization", words.disable_randomization,
               "load the program at the same addresses each time (default), or not");
  app.add_flag("--debug", words.debug, "gdbserver's own");
  app.add_flag("--remote-debug", words.remote_debug, "gdbserver's own");
  app.add_flag("--event-loop-debug", words.event_loop_debug, "gdbserver's own");
  app.add_option("--debug-format", words.debug_format, "gdbserver's own")->type_name("WORDS");
  app.add_option("--disable-packet", words.disable_packet, "gdbserver's own")->type_name("WORDS");
}

Result<std::vector<std::string>> take_wrapper(std::vector<std::string>& args) {
  auto comm = find_comm(args);
  auto wrapper = std::find(args.begin(), comm, "--wrapper");
  if (wrapper == comm) return std::vector<std::string>{};
  auto end = std::find(wrapper, args.end(), "--");  // its words hide COMM from find_comm
  if (end == args.end()) return misused("--wrapper has no `--` behind its words");
  if (end == wrapper + 1) return misused("--wrapper has no words");
  std::vector<std::string> words(wrapper + 1, end);
  args.erase(wrapper, end + 1);
  return words;
}

Result<ServeOptions> serve_options(const ServeWords& words, std::vector<std::string> wrapper,
                                   std::vector<std::string> rest) {
  if (rest.empty()) return misused("COMM is missing: where the debugger connects");
  if (rest.front().size() > 1 && rest.front().starts_with('-'))
    return misused(fmt::format("`{}` is no option", rest.front()));
  ServeOptions serve;
  serve.comm = rest.front();
  serve.multi = words.multi;
  serve.once = words.once;
  serve.wrapper = std::move(wrapper);
  serve.startup_with_shell = words.startup_with_shell;
  serve.disable_randomization = words.disable_randomization;
  serve.allow_remote_hosts = words.allow_remote;
  serve.pass_through = gdbservers_own(words);
  if (auto ok = apply(words.recording, serve); !ok) return fail(std::move(ok.error()));
  rest.erase(rest.begin());
  if (auto ok = place(std::move(rest), words.attach, serve); !ok)
    return fail(std::move(ok.error()));
  return serve;
}

}  // namespace tailtrace
