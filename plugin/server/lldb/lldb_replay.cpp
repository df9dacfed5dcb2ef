#include "plugin/server/lldb/lldb_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "decoder/history/opened_thread.h"

namespace tailtrace {
namespace {

constexpr std::string_view kBack = "QTailtraceBack:", kWhere = "qTailtraceWhere";
constexpr std::string_view kSelected = "QTailtraceSelected:";
constexpr std::uint64_t kRip = 16;
constexpr std::size_t kMaxRegisters = 1024;
constexpr std::size_t kMaxBreakpoints = 1 << 16;
constexpr std::size_t kMaxDescription_bytes = 1 << 20;

// The number in an attribute of an XML element.
std::optional<std::uint64_t> attribute(std::string_view element, std::string_view name) {
  std::string begin = fmt::format(" {}=\"", name);
  std::size_t at = element.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : element.substr(at + begin.size())) {
    if (c < '0' || c > '9') break;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > kMaxDescription_bytes) return std::nullopt;
  }
  return value;
}

bool writes_state(std::string_view packet) {
  if (packet.starts_with("QSaveRegisterState") || packet.starts_with("QRestoreRegisterState"))
    return true;  // LLDB saves what it is about to write
  return !packet.empty() && std::string_view("GPMX").find(packet.front()) != std::string_view::npos;
}

}  // namespace

bool LldbReplay::goes_back(std::string_view packet) {
  return packet == "bc" || packet == "bs" || packet.starts_with(kBack);
}

void LldbReplay::announce(rsp::FeatureList& features) {
  features.set("ReverseContinue", "+");
  features.set("ReverseStep", "+");
}

void LldbReplay::forget_debugger() {
  past_.reset();
  planned_.reset();
  selected_.reset();
  breakpoints_.clear();
  hits_.clear();
  withheld_.clear();
  step_off_.reset();
}

// Whether the debugger's thread is the one that is in the past.
Result<bool> LldbReplay::means_past() {
  if (!past_) return false;
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  return *thread == past_->thread;
}

Result<std::optional<std::string>> LldbReplay::answer(std::string_view packet) {
  if (auto noted = note_breakpoint(packet); !noted) return fail(std::move(noted.error()));
  auto in_past = means_past();
  if (!in_past) return fail(std::move(in_past.error()));
  Result<std::string> answer;
  if (packet.starts_with(kBack)) {
    answer = plan_back(packet.substr(kBack.size()));
  } else if (packet.starts_with(kWhere)) {
    answer = where(packet.substr(kWhere.size()));
  } else if (packet.starts_with(kSelected)) {
    answer = note_selected(packet.substr(kSelected.size()));
  } else if (planned_ && packet.starts_with("vCont;")) {
    answer = take_planned(packet);
  } else if (packet == "bc") {
    answer = back(Until::kBreakpoint);
  } else if (packet == "bs") {
    answer = back(Until::kOneInstruction);
  } else if (packet.size() > 1 && packet.front() == 'p' && parse_hex(packet.substr(1))) {
    std::uint64_t number = *parse_hex(packet.substr(1));
    if (*in_past && number != kRip) return std::optional(std::string(rsp::kFailed));
    answer = *in_past ? fmt::format("{:016x}",
                                    __builtin_bswap64(past_->at->item().instruction.address.value))
                      : read_register(number);
    // The server below reads single registers by itself.
    if (answer && answer->empty()) return std::optional<std::string>();
  } else if (past_ && packet.starts_with("vCont;")) {
    return forward(packet);
  } else if (*in_past && (packet == "g" || writes_state(packet))) {
    answer = std::string(rsp::kFailed);
  } else {
    if (packet == "k" || packet.starts_with("vKill;") || packet.starts_with("D")) past_.reset();
    return std::optional<std::string>();
  }
  if (!answer) return fail(std::move(answer.error()));
  return std::optional(std::move(*answer));
}

// REQUIRES: it stands on an item.
std::uint64_t LldbReplay::items_back() const { return present() - past_->at->item().number; }

bool LldbReplay::has_breakpoint(std::int32_t process, Address address) const {
  auto those = breakpoints_.find(process);
  return those != breakpoints_.end() && those->second.contains(address);
}

// `Z0,ADDRESS,KIND` and `z0,...`, and the same of hardware breakpoints. LLDB takes its breakpoints
// out of processes that the program makes, too.
Result<void> LldbReplay::note_breakpoint(std::string_view packet) {
  bool is_breakpoint = packet.size() > 3 && (packet[0] == 'Z' || packet[0] == 'z') &&
                       (packet[1] == '0' || packet[1] == '1') && packet[2] == ',';
  if (!is_breakpoint) return {};
  auto address = parse_hex(packet.substr(3, packet.find(',', 3) - 3));
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (!address || !*thread) return {};
  auto& those = breakpoints_[(*thread)->pid];
  if (packet[0] == 'Z') {
    if (those.size() < kMaxBreakpoints) those.insert({*address});
  } else if (auto one = those.find({*address}); one != those.end()) {
    those.erase(one);
  }
  return {};
}

bool LldbReplay::stops_here() const {
  const HistoryItem& item = past_->at->item();
  return !item.is_gap && has_breakpoint(past_->thread.pid, item.instruction.address);
}

// `edge`: "begin" or "end" when the history has no more in that direction. LLDB selects the first
// thread for a `replaylog`, whichever it is of; that of the others is told by a reason that has it
// select the thread.
std::string LldbReplay::stop_reply(ThreadId thread, std::string_view edge) const {
  if (!edge.empty() && thread.tid != thread.pid) return told_reply(thread, "history boundary");
  std::string reply = "T05";
  if (!edge.empty()) reply += fmt::format("replaylog:{};", edge);
  return reply + "thread:" + rsp::format_thread(thread) + ";";
}

std::string LldbReplay::told_reply(ThreadId thread, std::string_view reason) {
  return fmt::format("T00thread:{};reason:processor trace;description:{};",
                     rsp::format_thread(thread), to_hex(as_bytes(reason)));
}

// Turns to the history of a thread. False when there is nothing of it.
Result<bool> LldbReplay::enter(ThreadId thread) {
  if (past_ && past_->thread == thread) return true;
  past_.reset();
  auto past = past_of(thread, Part::kNewest);
  if (!past) return fail(std::move(past.error()));
  past_ = std::move(*past);
  return past_.has_value();
}

// Nothing where no instruction is recorded.
Result<std::optional<LldbReplay::Past>> LldbReplay::past_of(ThreadId thread, Part part) {
  RecordedThread* recorded = recorder_.find(thread);
  if (recorded == nullptr || !recorded->enabled) return std::optional<Past>();
  auto snapshot = recorder_.visible(*recorded, part);
  if (!snapshot) return fail(std::move(snapshot.error()));
  auto shown = std::make_shared<const ThreadSnapshot>(of_this_program(std::move(*snapshot)));
  OpenedThread opened = records_in_place(*shown, shown, shown->records);
  HistorySettings settings;
  settings.numbers = HistorySettings::Numbers::kFromNewest;
  Past past{thread, part, std::make_unique<const History>(opened.frame, opened.source, settings),
            nullptr};
  past.at = std::make_unique<HistoryCursor>(*past.history);
  // Gaps may lie behind the newest instruction.
  past.at->seek_to_newest();
  while (past.at->valid() && past.at->item().is_gap) past.at->prev();
  if (!past.at->valid()) return std::optional<Past>();
  past.at->seek(past.history->newest() + 1);
  return past;
}

// Whether the history holds an item; all of it is made when the newest part does not, and whoever
// has a cursor takes the new one.
bool LldbReplay::reaches(std::uint64_t number) {
  if (past_->history->holds(number)) return true;
  if (past_->part == Part::kAll) return false;
  const std::uint64_t stands = past_->at->valid() ? past_->at->item().number : present();
  auto all = past_of(past_->thread, Part::kAll);
  if (!all || !*all) return false;
  past_ = std::move(**all);
  past_->at->seek(stands);
  return past_->history->holds(number);
}

// The thread that goes back. With `bc` LLDB names none, and has selected one after the other just
// before, to read where they stand: it is the one in the past, else the one that stopped last.
Result<std::optional<ThreadId>> LldbReplay::thread_back(Until until) {
  const auto selected = std::exchange(selected_, std::nullopt);
  if (selected) return selected;
  if (until == Until::kOneInstruction) return below_.debugger_thread();
  if (past_) return std::optional(past_->thread);
  auto told = below_.told_thread();
  return told ? told : below_.debugger_thread();
}

Result<std::string> LldbReplay::back(Until until) {
  auto chosen = thread_back(until);
  if (!chosen) return fail(std::move(chosen.error()));
  if (!*chosen) return std::string(rsp::kFailed);
  std::optional<Past> other;
  if (past_ && past_->thread != **chosen) other = std::exchange(past_, std::nullopt);
  auto entered = enter(**chosen);
  if (!entered) return fail(std::move(entered.error()));
  if (!*entered) past_ = std::move(other);
  if (!*entered) return stop_reply(**chosen, "begin");
  // In the present it stands on no item.
  std::uint64_t from = past_->at->valid() ? past_->at->item().number : present();
  std::uint64_t oldest = from;  // the oldest instruction on the way
  for (std::uint64_t number = from - 1; reaches(number); --number) {
    past_->at->seek(number);
    if (past_->at->item().is_gap) continue;
    oldest = number;
    if (until == Until::kOneInstruction || stops_here()) return stop_reply(past_->thread, {});
  }
  ThreadId thread = past_->thread;
  past_->at->seek(oldest);
  if (!past_->at->valid()) past_.reset();
  return stop_reply(thread, "begin");
}

// A request to run while the debugger sees the past.
Result<std::optional<std::string>> LldbReplay::forward(std::string_view packet) {
  ThreadId thread = past_->thread;
  auto actions = rsp::parse_resume(packet, {});
  const rsp::ResumeAction* action = actions ? rsp::action_for(*actions, thread) : nullptr;
  // Others only: LLDB steps those alone that stand at a breakpoint. This one does not move.
  if (action == nullptr) return std::optional<std::string>();
  bool one = action->kind != rsp::ResumeAction::Kind::kContinue;
  HistoryCursor& at = *past_->at;
  for (at.next(); at.valid(); at.next()) {
    if (at.item().is_gap) continue;
    if (one || stops_here()) return std::optional(stop_reply(thread, {}));
  }
  past_.reset();
  return std::optional(stop_reply(thread, one ? "" : "end"));
}

// Of gdbserver, which reads all registers at once only. LLDB could not be told then that one of
// them is not known. An empty answer: the server below may answer.
Result<std::string> LldbReplay::read_register(std::uint64_t number) {
  auto learned = learn_registers();
  if (!learned) return fail(std::move(learned.error()));
  if (!*learned) return std::string();
  if (number >= registers_.size() || registers_[number].digits == 0)
    return std::string(rsp::kFailed);
  if (auto restored = below_.restore_selection(); !restored)
    return fail(std::move(restored.error()));
  auto all = below_.ask("g");
  if (!all) return fail(std::move(all.error()));
  const RegisterPlace& place = registers_[number];
  if (all->size() < place.at_digits + place.digits) return std::string(rsp::kFailed);
  return all->substr(place.at_digits, place.digits);
}

// `P10=0011223344556677`
Result<std::string> LldbReplay::request_for_server(std::string packet) {
  std::size_t equals = packet.find('=');
  if (!packet.starts_with('P') || equals == std::string::npos || past_) return packet;
  auto learned = learn_registers();
  if (!learned) return fail(std::move(learned.error()));
  auto number = parse_hex(std::string_view(packet).substr(1, equals - 1));
  std::string value = packet.substr(equals + 1);
  if (!*learned || !number || *number >= registers_.size()) return packet;
  const RegisterPlace& place = registers_[*number];
  if (auto restored = below_.restore_selection(); !restored)
    return fail(std::move(restored.error()));
  auto all = below_.ask("g");
  if (!all) return fail(std::move(all.error()));
  if (value.size() != place.digits || all->size() < place.at_digits + place.digits) return packet;
  return "G" + all->replace(place.at_digits, place.digits, value);
}

// From the target description: registers stand in `g` in the order of their numbers, without
// holes. False when the description is not one document: whoever has such a one knows `p`.
Result<bool> LldbReplay::learn_registers() {
  if (single_registers_) return false;
  if (!registers_.empty()) return true;
  std::string text;
  for (bool more = true; more && text.size() < kMaxDescription_bytes;) {
    auto piece = below_.ask(fmt::format("qXfer:features:read:target.xml:{:x},4000", text.size()));
    if (!piece) return fail(std::move(piece.error()));
    if (piece->empty() || (piece->front() != 'm' && piece->front() != 'l')) return false;
    more = piece->front() == 'm' && piece->size() > 1;
    text += rsp::unescape(std::string_view(*piece).substr(1));
  }
  if (text.find("<xi:include") != std::string::npos) return false;
  std::vector<RegisterPlace> found;
  std::uint64_t next = 0;
  for (std::size_t at = text.find("<reg "); at != std::string::npos; at = text.find("<reg ", at)) {
    std::size_t end = text.find('>', at);
    std::string_view element = std::string_view(text).substr(at, end - at);
    auto bits = attribute(element, "bitsize");
    std::uint64_t number = attribute(element, "regnum").value_or(next);
    if (!bits || number >= kMaxRegisters) return false;
    found.resize(std::max<std::size_t>(found.size(), number + 1));
    found[number].digits = *bits / 4;
    next = number + 1;
    at = end == std::string::npos ? text.size() : end;
  }
  for (std::size_t n = 1; n < found.size(); ++n)
    found[n].at_digits = found[n - 1].at_digits + found[n - 1].digits;
  registers_ = std::move(found);
  return !registers_.empty();
}

}  // namespace tailtrace
