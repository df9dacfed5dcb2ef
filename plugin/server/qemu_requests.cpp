// What QemuLink answers by itself, and how requests and answers are made to fit qemu's stub.
#include <fmt/core.h>
#include <unistd.h>

#include "decoder/base/bytes.h"
#include "plugin/server/qemu_link.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace {
namespace {

constexpr std::string_view kStubProcess = "p01.";  // as the stub names its only process

// What the debugger is told of registers before there is a stub.
constexpr std::string_view kArchitecture =
    "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
    "<target><architecture>i386:x86-64</architecture></target>";

// The stub's own description lacks `orig_rax`. GDB takes a target without it for no Linux one, and
// then finds no shared libraries. It comes last, and says that no system call is under way.
constexpr std::string_view kDescription =
    "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
    "<target><architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>"
    "<xi:include href=\"i386-64bit.xml\"/>"
    "<feature name=\"org.gnu.gdb.i386.linux\">"
    "<reg name=\"orig_rax\" bitsize=\"64\" type=\"int\" group=\"system\"/></feature></target>";
constexpr std::string_view kOrigRax = "ffffffffffffffff";

// Requests that name a thread.
bool names_thread(std::string_view request) {
  for (std::string_view prefix : {"H", "T", "vCont;", "qThreadExtraInfo,"})
    if (request.starts_with(prefix)) return true;
  return false;
}

// Answers that name one: stop replies, qC, the list of threads.
bool answer_names_thread(std::string_view answer) {
  for (std::string_view prefix : {"T", "QC", "mp"})
    if (answer.starts_with(prefix)) return true;
  return false;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0;;) {
    std::size_t found = text.find(from, at);
    if (found == std::string_view::npos) return result.append(text.substr(at));
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
}

std::optional<std::string> text_of_hex(std::string_view digits) {
  auto bytes = from_hex(digits);
  return bytes ? std::optional<std::string>(as_text(*bytes)) : std::nullopt;
}

}  // namespace

std::string QemuLink::request_for_stub(std::string_view request) {
  asked_registers_ = request == "g";
  if (request.starts_with('G') && request.size() > kOrigRax.size())
    return std::string(request.substr(0, request.size() - kOrigRax.size()));
  if (!process_ || !names_thread(request)) return std::string(request);
  return replace_all(request, fmt::format("p{:x}.", process_->pid()), kStubProcess);
}

std::string QemuLink::answer_for_debugger(std::string_view answer) {
  if (std::exchange(asked_supported_, false)) {
    auto features = rsp::FeatureList::parse(answer);
    add_features(features);
    return features.to_string();
  }
  if (std::exchange(asked_registers_, false) && !answer.starts_with('E'))
    return std::string(answer).append(kOrigRax);
  if (!process_ || !answer_names_thread(answer)) return std::string(answer);
  return replace_all(answer, kStubProcess, fmt::format("p{:x}.", process_->pid()));
}

void QemuLink::add_features(rsp::FeatureList& features) const {
  for (std::string_view name :
       {"qXfer:exec-file:read", "QEnvironmentHexEncoded", "QEnvironmentUnset", "QEnvironmentReset",
        "QStartupWithShell", "multiprocess"})
    features.set(name, "+");
  if (wants_exec_) features.set("exec-events", "+");
}

// True when the answer is on its way.
bool QemuLink::answer_here(std::string_view request) {
  static constexpr std::string_view kRun = "vRun;", kKill = "vKill;";
  if (request.starts_with("qSupported")) {
    supported_request_ = request;
    wants_exec_ = request.find("exec-events+") != std::string_view::npos;
  }
  if (request == "!") {
    reply("OK");
  } else if (request.starts_with(kRun)) {
    run(request.substr(kRun.size()));
  } else if (request.starts_with(kKill)) {
    end_program();
    reply("OK");
  } else if (request == "k") {
    end_program();
  } else if (request.starts_with("R")) {
    if (auto launched = launch(program_); !launched) say_error(launched.error());
  } else if (request == "D" || request.starts_with("D;")) {
    let_go();
    reply("OK");
  } else if (request.starts_with("qAttached")) {
    reply("0");  // we made it: quitting the debugger kills it
  } else if (request.starts_with("QEnvironment")) {
    reply(set_environment(request) ? "OK" : "E01");
  } else if (request.starts_with("QStartupWithShell:") ||
             request.starts_with("QDisableRandomization:")) {
    reply("OK");  // qemu lays out addresses the same way each time, and no shell is needed
  } else if (auto transfer = rsp::parse_transfer_read(request);
             transfer && transfer->object == "exec-file") {
    reply(stub_ ? rsp::transfer_answer(executed_file(), *transfer) : "E01");
  } else if (transfer && transfer->object == "features" && transfer->annex == "target.xml") {
    reply(rsp::transfer_answer(stub_ ? kDescription : kArchitecture, *transfer));
  } else {
    return false;
  }
  return true;
}

// While no program runs there is no stub to ask.
void QemuLink::answer_without_program(std::string_view request) {
  if (request == "?") {
    reply(ended_ ? fmt::format("W{:02x}", *ended_ & 0xff) : "W00");
  } else if (request.starts_with("qSupported")) {
    rsp::FeatureList features;
    features.set("PacketSize", "=1000");
    features.set("qXfer:features:read", "+");
    features.set("qXfer:auxv:read", "+");
    features.set("vContSupported", "+");
    add_features(features);
    reply(features.to_string());
  } else if (request.starts_with("qfThreadInfo") || request.starts_with("qsThreadInfo")) {
    reply("l");
  } else if (request == "vCont?") {
    reply("vCont;c;C;s;S");
  } else if (request.starts_with("H")) {
    reply("OK");
  } else if (request.starts_with("qXfer:")) {
    reply("E01");
  } else if (!request.empty() && std::string_view("gmpT").find(request[0]) != std::string::npos) {
    reply("E01");
  } else {
    reply("");
  }
}

// FILE;ARG;ARG... in hexadecimal; no FILE: the one before.
void QemuLink::run(std::string_view arguments) {
  std::vector<std::string> words;
  while (true) {
    std::size_t end = std::min(arguments.find(';'), arguments.size());
    auto word = text_of_hex(arguments.substr(0, end));
    if (!word) return reply("E01");
    words.push_back(std::move(*word));
    if (end == arguments.size()) break;
    arguments.remove_prefix(end + 1);
  }
  if (words[0].empty() && !program_.empty()) words[0] = program_[0];
  auto launched = launch(std::move(words));
  if (!launched) return say_error(launched.error());
  // The stub says where the program stands.
  if (auto sent = greet_stub(); !sent) return say_error(sent.error());
  if (!stub_->send("?")) reply("E01");
}

void QemuLink::say_error(const Error& error) { reply("E." + error.to_line()); }

// A new stub knows nothing of what the debugger agreed on with the one before.
Result<void> QemuLink::greet_stub() {
  hides_answer_ = true;
  return stub_->send(supported_request_.empty() ? "qSupported:multiprocess+" : supported_request_);
}

bool QemuLink::set_environment(std::string_view request) {
  static constexpr std::string_view kSet = "QEnvironmentHexEncoded:", kUnset = "QEnvironmentUnset:";
  if (request == "QEnvironmentReset") {
    environment_.clear();
  } else if (request.starts_with(kSet)) {
    auto text = text_of_hex(request.substr(kSet.size()));
    std::size_t equals = text ? text->find('=') : std::string::npos;
    if (equals == std::string::npos) return false;
    environment_[text->substr(0, equals)] = text->substr(equals + 1);
  } else if (request.starts_with(kUnset)) {
    auto name = text_of_hex(request.substr(kUnset.size()));
    if (!name) return false;
    environment_[*name] = std::nullopt;
  } else {
    return false;
  }
  return true;
}

std::vector<std::string> QemuLink::environment() const {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (!environment_.contains(std::string(text.substr(0, text.find('=')))))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : environment_)
    if (value) result.push_back(name + "=" + *value);
  return result;
}

}  // namespace tailtrace
