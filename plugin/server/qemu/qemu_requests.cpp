// What QemuLink says to requests that do not make a program run.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/qemu/memory_request.h"
#include "plugin/server/qemu/protected_memory.h"
#include "plugin/server/qemu/qemu_link.h"
#include "plugin/server/qemu/target_description.h"
#include "plugin/server/rsp/feature_list.h"

namespace tailtrace {
namespace {

constexpr std::string_view kMonitorExit = "qRcmd,65786974";

// What the debugger is told of registers before there is a stub.
constexpr std::string_view kArchitecture =
    "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
    "<target><architecture>i386:x86-64</architecture></target>";

std::optional<std::string> text_of_hex(std::string_view digits) {
  auto bytes = from_hex(digits);
  return bytes ? std::optional<std::string>(as_text(*bytes)) : std::nullopt;
}

std::optional<std::int32_t> process_number(std::string_view digits) {
  auto number = parse_hex(digits);
  if (!number || *number > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

}  // namespace

Result<std::string> QemuLink::answer(std::string_view request) {
  for (auto part :
       {&QemuLink::answer_control, &QemuLink::answer_setting, &QemuLink::answer_of_threads,
        &QemuLink::answer_transfer, &QemuLink::answer_untold, &QemuLink::answer_of_stub}) {
    auto answered = (this->*part)(request);
    if (!answered) return fail(std::move(answered.error()));
    if (*answered) return std::move(**answered);
  }
  return std::string();
}

QemuLink::Answer QemuLink::answer_control(std::string_view request) {
  static constexpr std::string_view kRun = "vRun;", kKill = "vKill;";
  Result<std::string> text;
  if (request.starts_with("qSupported"))
    text = supported(request);
  else if (request == "!")
    text = "OK";
  else if (request == "?")
    text = status();
  else if (request == "vCont?")
    text = "vCont;c;C;s;S;r";
  else if (request.starts_with(kRun))
    text = run(request.substr(kRun.size()));
  else if (request.starts_with(kKill))
    text = kill(request.substr(kKill.size()));
  else if (request == "D" || request.starts_with("D;"))
    text = detach(request);
  else if (request.starts_with("vAttach;"))
    text = "E.qemu records programs that it starts itself: use --engine=step";
  else if (request == kMonitorExit)
    text = (kill_all(), exits_ = true, "OK");
  else
    return std::optional<std::string>();
  if (!text) return fail(std::move(text.error()));
  return std::optional(std::move(*text));
}

QemuLink::Answer QemuLink::answer_setting(std::string_view request) {
  static constexpr std::string_view kSet = "QEnvironmentHexEncoded:", kUnset = "QEnvironmentUnset:",
                                    kFolder = "QSetWorkingDir:", kPlain = "QEnvironment:",
                                    kStdio = "QSetSTD",
                                    kSignals = "QProgramSignals:", kPass = "QPassSignals:";
  bool good = true;
  if (request == "QEnvironmentReset") {
    programs_.reset_environment();
  } else if (request.starts_with(kSet)) {
    auto text = text_of_hex(request.substr(kSet.size()));
    std::size_t equals = text ? text->find('=') : std::string::npos;
    good = equals != std::string::npos;
    if (good) programs_.set_variable(text->substr(0, equals), text->substr(equals + 1));
  } else if (request.starts_with(kPlain)) {  // LLDB's, as is the next one
    std::string text(request.substr(kPlain.size()));
    std::size_t equals = text.find('=');
    good = equals != std::string::npos;
    if (good) programs_.set_variable(text.substr(0, equals), text.substr(equals + 1));
  } else if (request.starts_with(kStdio)) {
    good = set_stdio(request.substr(kStdio.size()));
  } else if (request.starts_with(kUnset)) {
    auto name = text_of_hex(request.substr(kUnset.size()));
    good = name.has_value();
    if (good) programs_.set_variable(*name, std::nullopt);
  } else if (request.starts_with(kFolder)) {
    auto folder = text_of_hex(request.substr(kFolder.size()));
    good = folder.has_value();
    if (good) programs_.set_folder(std::move(*folder));
  } else if (request.starts_with(kSignals)) {
    program_signals_ = rsp::parse_signals(request.substr(kSignals.size()));
  } else if (request.starts_with(kPass)) {
    passed_signals_ = rsp::parse_signals(request.substr(kPass.size()));
    for (const auto& [pid, inferior] : programs_.all()) inferior->pass_signals(passed_signals_);
  } else if (auto caught = rsp::parse_catch_request(request)) {
    QemuInferior* inferior = selected();
    good = inferior != nullptr && inferior->catch_calls(*caught);
  } else if (!request.starts_with("QStartupWithShell:") &&
             !request.starts_with("QDisableRandomization:")) {
    return std::optional<std::string>();
  }
  // qemu lays out addresses the same way each time, and no shell is needed.
  return std::optional<std::string>(good ? "OK" : rsp::kFailed);
}

// `IN:PATH`, `OUT:PATH` or `ERR:PATH`.
bool QemuLink::set_stdio(std::string_view setting) {
  std::size_t colon = std::min(setting.find(':'), setting.size());
  std::string_view name = setting.substr(0, colon);
  auto path = text_of_hex(setting.substr(std::min(colon + 1, setting.size())));
  if (!path || (name != "IN" && name != "OUT" && name != "ERR")) return false;
  programs_.set_stdio_path(name == "IN" ? 0 : name == "OUT" ? 1 : 2, std::move(*path));
  return true;
}

QemuLink::Answer QemuLink::answer_of_threads(std::string_view request) {
  Result<std::string> text;
  if (request.starts_with("H"))
    text = select(request);
  else if (request == "qC")
    text = selected() != nullptr ? "QC" + rsp::format_thread(general_) : "";
  else if (request == "qfThreadInfo")
    text = list_threads();
  else if (request == "qsThreadInfo")
    text = "l";
  else if (request.starts_with("T"))
    text = is_alive(request.substr(1));
  else if (request.starts_with("qAttached"))
    text = "0";  // we made it: quitting the debugger kills it
  else
    return std::optional<std::string>();
  if (!text) return fail(std::move(text.error()));
  return std::optional(std::move(*text));
}

QemuLink::Answer QemuLink::answer_transfer(std::string_view request) {
  if (request.starts_with("vFile:")) return std::optional(files_.answer(request));
  auto transfer = rsp::parse_transfer_read(request);
  if (!transfer) return std::optional<std::string>();
  QemuInferior* inferior = selected();
  if (transfer->object == "exec-file") {
    if (!transfer->annex.empty())
      inferior = programs_.find(process_number(transfer->annex).value_or(0));
    if (inferior == nullptr) return std::optional<std::string>(rsp::kFailed);
    return std::optional(rsp::transfer_answer(inferior->executed_file(), *transfer));
  }
  if (transfer->object != "features" || transfer->annex != "target.xml")
    return std::optional<std::string>();
  std::string description =
      inferior != nullptr ? qemu_target_description() : std::string(kArchitecture);
  return std::optional(rsp::transfer_answer(description, *transfer));
}

std::optional<std::string> QemuLink::made_file(const std::string& path) {
  for (const auto& [pid, inferior] : programs_.all()) {
    for (const char* file : {"maps", "smaps"})
      if (path == fmt::format("/proc/{}/{}", pid, file)) return inferior->maps(file);
    if (path == fmt::format("/proc/{}/cmdline", pid)) return inferior->command_line();
  }
  return std::nullopt;
}

std::optional<std::string> QemuLink::made_link(const std::string& path) {
  for (const auto& [pid, inferior] : programs_.all())
    if (path == fmt::format("/proc/{}/exe", pid)) return inferior->executed_file();
  return std::nullopt;
}

// Registers, memory, breakpoints, the rest of its description and the auxiliary vector.
QemuLink::Answer QemuLink::answer_of_stub(std::string_view request) {
  bool of_state = !request.empty() &&
                  std::string_view("gGpPmMZz").find(request.front()) != std::string_view::npos;
  if (!of_state && !request.starts_with("qXfer:features:read:") &&
      !request.starts_with("qXfer:auxv:read:"))
    return std::optional<std::string>();
  bool of_breakpoint = request[0] == 'Z' || request[0] == 'z';
  // For loads alone debuggers take what stops for stores as well, as the processor cannot either.
  bool of_loads = of_breakpoint && request.size() > 1 && request[1] == '3';
  if (of_loads) return std::optional(std::string());
  QemuInferior* inferior = selected();
  if (inferior == nullptr) return std::optional<std::string>(rsp::kFailed);
  if (request[0] == 'm' || request[0] == 'M') return answer_of_memory(*inferior, request);
  std::string own(request);
  if (own[0] == 'G' && own.size() > kOrigRax_digits) own.resize(own.size() - kOrigRax_digits);
  auto answered = inferior->ask_of(general_, own);
  if (!answered) return fail(std::move(answered.error()));
  if (request == "g" && !answered->starts_with('E'))
    answered->append(fmt::format("{:016x}", __builtin_bswap64(inferior->call_of(general_))));
  return std::optional(std::move(*answered));
}

// As much as can be read; `OK` when all is written.
QemuLink::Answer QemuLink::answer_of_memory(QemuInferior& inferior, std::string_view request) {
  const bool writes = request[0] == 'M';
  std::string all;
  for (const std::string& part : parts_of_memory_request(request)) {
    auto answered = inferior.ask_of(general_, part);
    if (answered && writes && answered->starts_with('E'))
      answered = write_protected(inferior, general_, part);
    if (!answered) return fail(std::move(answered.error()));
    const bool is_done = !answered->starts_with('E');
    if (!is_done && (writes || all.empty())) return std::optional(std::move(*answered));
    if (!is_done) break;
    all = writes ? std::move(*answered) : all + *answered;
  }
  return std::optional(std::move(all));
}

std::string QemuLink::supported(std::string_view request) {
  wants_exec_ = request.find("exec-events+") != std::string_view::npos;
  wants_no_resumed_ = request.find("no-resumed+") != std::string_view::npos;
  // As much as gdbserver takes, of which the stub takes a fifth (memory_request.h).
  std::string text =
      "PacketSize=47ff;qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;"
      "qXfer:libraries-svr4:read+;qXfer:threads:read+;qXfer:siginfo:read+;multiprocess+;"
      "QEnvironmentHexEncoded+;QEnvironmentUnset+;QEnvironmentReset+;QSetWorkingDir+;"
      "QStartupWithShell+;QCatchSyscalls+;QPassSignals+;QProgramSignals+;QDisableRandomization+;"
      "vContSupported+;"
      "swbreak+;hwbreak+;"
      "no-resumed+";
  return wants_exec_ ? text + ";exec-events+" : text;
}

Result<std::string> QemuLink::status() {
  QemuInferior* inferior = selected();
  if (inferior == nullptr) return fmt::format("W{:02x}", ended_with_ & 0xff);
  return inferior->ask("?");
}

// `Hg...` or `Hc...`
Result<std::string> QemuLink::select(std::string_view request) {
  auto thread = request.size() > 2 ? rsp::parse_thread(request.substr(2)) : std::nullopt;
  if (!thread) return std::string(rsp::kFailed);
  if (request[1] == 'c') {
    run_choice_ = *thread;
    return std::string("OK");
  }
  if (thread->tid > 0) {
    auto found = living(*thread);
    if (!found) return fail(std::move(found.error()));
    if (!*found) return std::string(rsp::kFailed);
    general_ = **found;
    return std::string("OK");
  }
  if (thread->pid <= 0) return std::string(selected() != nullptr ? "OK" : rsp::kFailed);
  QemuInferior* inferior = programs_.find(thread->pid);
  if (inferior == nullptr) return std::string(rsp::kFailed);
  general_ = inferior->stopped_thread();
  return std::string("OK");
}

// The thread that is meant, if there is one. LLDB sends its number without that of its program.
Result<std::optional<ThreadId>> QemuLink::living(const rsp::ThreadSelector& meant) {
  for (const auto& [pid, inferior] : programs_.all()) {
    if (meant.pid > 0 && meant.pid != pid) continue;
    ThreadId thread{pid, meant.tid};
    auto alive = inferior->ask("T" + rsp::format_thread(thread));
    if (!alive) return fail(std::move(alive.error()));
    if (*alive == "OK") return std::optional(thread);
  }
  return std::optional<ThreadId>();
}

// Of a thread that is being made the stub says -1, in 32 bits; it lists one thread in an answer.
Result<std::vector<ThreadId>> QemuLink::all_threads() {
  std::vector<ThreadId> all;
  for (const auto& [pid, inferior] : programs_.all()) {
    auto part = inferior->ask("qfThreadInfo");
    while (part && part->starts_with('m')) {
      auto thread = rsp::parse_thread(part->substr(1));
      if (thread && thread->is_thread()) all.push_back(thread->thread());
      part = inferior->ask("qsThreadInfo");
    }
    if (!part) return fail(std::move(part.error()));
  }
  return all;
}

Result<std::string> QemuLink::list_threads() {
  auto all = all_threads();
  if (!all) return fail(std::move(all.error()));
  std::string list;
  for (ThreadId thread : *all) list += (list.empty() ? "m" : ",") + rsp::format_thread(thread);
  return list.empty() ? "l" : list;
}

Result<std::string> QemuLink::is_alive(std::string_view text) {
  auto thread = rsp::parse_thread(text);
  if (!thread || thread->tid <= 0) return std::string(rsp::kFailed);
  auto found = living(*thread);
  if (!found) return fail(std::move(found.error()));
  return std::string(*found ? "OK" : rsp::kFailed);
}

// FILE;ARG;ARG... in hexadecimal; no FILE: the one before.
Result<std::string> QemuLink::run(std::string_view arguments) {
  std::vector<std::string> words;
  for (bool more = true; more;) {
    std::size_t end = arguments.find(';');
    auto word = text_of_hex(arguments.substr(0, end));
    if (!word) return std::string(rsp::kFailed);
    words.push_back(std::move(*word));
    more = end != std::string_view::npos;
    if (more) arguments.remove_prefix(end + 1);
  }
  if (words[0].empty() && !program_.empty()) words[0] = program_[0];
  auto started = start(std::move(words));
  if (!started) {
    say(started.error().to_line());  // GDB does not show what an error says
    return "E." + started.error().to_line();
  }
  return (*started)->ask("?");
}

std::string QemuLink::kill(std::string_view digits) {
  auto pid = process_number(digits);
  if (!pid) return std::string(rsp::kFailed);
  const bool lives = programs_.find(*pid) != nullptr;
  if (lives) say(fmt::format("Killing process(es): {}", *pid));
  const bool had_to_be_told = forget(*pid);
  return lives || had_to_be_told ? "OK" : std::string(rsp::kFailed);
}

std::string QemuLink::detach(std::string_view request) {
  QemuInferior* inferior = selected();
  if (request.size() > 2) inferior = programs_.find(process_number(request.substr(2)).value_or(0));
  if (inferior == nullptr) return std::string(rsp::kFailed);
  std::int32_t pid = inferior->pid();
  say(fmt::format("Detaching from process {}", pid));
  inferior->detach([this](std::uint8_t signal) {
    // As gdbserver has it where it was not told.
    if (!program_signals_) return signal != kProtocolSigTrap && signal != kProtocolSigInt;
    return program_signals_->test(signal);
  });
  forget(pid);
  return "OK";
}

void QemuLink::restart() {
  kill_all();
  if (program_.empty()) return;
  if (auto started = start(program_); !started) say(started.error().to_line());
}

}  // namespace tailtrace
