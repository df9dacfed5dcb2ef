#include "plugin/lldb/moves.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "plugin/lldb/positions.h"

namespace tailtrace::lldb_plugin {
namespace {

// Has a thread go where the server leads it. LLDB is not to show it before it is known what called:
// it looks for values in callers, and does not ask for those again.
Result<void> go(Session& session, lldb::SBThread thread) {
  const lldb::tid_t selected = session.thread().GetThreadID();
  // What a stop has left of a step would be gone on with.
  if (thread.GetThreadID() == selected) (void)session.command("thread plan discard 1");
  lldb::SBError error;
  thread.StepInstruction(false, error);
  // LLDB may turn to another one that had stopped before.
  session.target().GetProcess().SetSelectedThreadByID(selected);
  look_for_history_frames(session);
  if (error.Fail()) return fail(ErrorCode::kNegative, error.GetCString());
  return {};
}

Result<std::string> plan(Session& session, lldb::SBThread thread, const std::string& step) {
  return session.packet(fmt::format("QTailtraceBack:{};{}", session.name_of(thread), step));
}

// One thread is in the past, and comes back when another one goes. LLDB looks at those only that it
// has had go, and would say of it that it is where it was. False: there was none.
Result<bool> bring_back_others(Session& session) {
  lldb::SBProcess process = session.target().GetProcess();
  const lldb::tid_t selected = session.thread().GetThreadID();
  for (std::uint32_t i = 0; i < process.GetNumThreads(); ++i) {
    lldb::SBThread other = process.GetThreadAtIndex(i);
    if (other.GetThreadID() == selected || other.GetStopReason() == lldb::eStopReasonNone) continue;
    auto where = session.packet("qTailtraceWhere:" + session.name_of(other));
    if (!where) return fail(std::move(where.error()));
    if (!where->starts_with('-')) continue;
    auto planned = plan(session, other, "goto;0");
    if (!planned) return fail(std::move(planned.error()));
    auto gone = *planned == "OK" ? go(session, other) : Result<void>();
    if (!gone) return fail(std::move(gone.error()));
    return true;
  }
  return false;
}

// Said once to each user.
void note_memory(Session& session) {
  static std::set<lldb::user_id_t> told;
  if (told.insert(session.debugger().GetID()).second)
    session.print(
        "note: memory is still that of the present: global variables, and what pointers point "
        "to\n");
}

}  // namespace

Result<Moved> move(Session& session, const std::string& step) {
  lldb::SBThread thread = session.thread();
  auto answer = plan(session, thread, step);
  if (!answer) return fail(std::move(answer.error()));
  if (*answer == "begin") return Moved{};
  if (*answer != "OK" && *answer != "end" && *answer != "call")
    return fail(ErrorCode::kNegative, "cannot step back", "the thread is not recorded",
                "tailtrace start");
  std::string way = *answer;
  auto others = bring_back_others(session);
  if (!others) return fail(std::move(others.error()));
  if (*others) answer = plan(session, thread, step);
  if (!answer) return fail(std::move(answer.error()));
  if (auto gone = go(session, thread); !gone) return fail(std::move(gone.error()));
  return Moved{true, std::move(way)};
}

Result<void> show(Session& session, const Moved& moved) {
  if (!moved.moved)
    return fail(ErrorCode::kNegative, "cannot step back", "the history begins here");
  auto shown = session.command("process status");
  if (!shown) return fail(std::move(shown.error()));
  session.print(*shown);
  if (standing(session) != 0) note_memory(session);
  return {};
}

lldb::SBLineEntry line_at(Session& session, lldb::addr_t address) {
  return session.target().ResolveLoadAddress(address).GetLineEntry();
}

bool same_line(const lldb::SBLineEntry& a, const lldb::SBLineEntry& b) {
  return a.IsValid() && b.IsValid() && a.GetLine() == b.GetLine() &&
         a.GetFileSpec() == b.GetFileSpec();
}

std::string code_of_function(Session& session, lldb::addr_t pc) {
  lldb::SBTarget target = session.target();
  lldb::SBAddress address = target.ResolveLoadAddress(pc);
  lldb::SBFunction function = address.GetFunction();
  lldb::SBSymbol symbol = address.GetSymbol();
  lldb::SBAddress begin =
      function.IsValid() ? function.GetStartAddress() : symbol.GetStartAddress();
  lldb::SBAddress end = function.IsValid() ? function.GetEndAddress() : symbol.GetEndAddress();
  if (!begin.IsValid() || !end.IsValid()) return {};
  return fmt::format(";{:x};{:x}", begin.GetLoadAddress(target), end.GetLoadAddress(target));
}

std::string code_of_line(Session& session, lldb::addr_t pc) {
  lldb::SBTarget target = session.target();
  lldb::SBLineEntry line = line_at(session, pc);
  if (!line.IsValid()) return {};
  lldb::addr_t begin = line.GetStartAddress().GetLoadAddress(target);
  lldb::addr_t end = line.GetEndAddress().GetLoadAddress(target);
  for (lldb::SBLineEntry next; same_line(line, next = line_at(session, end));) {
    lldb::addr_t further = next.GetEndAddress().GetLoadAddress(target);
    if (further <= end) break;
    end = further;
  }
  for (lldb::SBLineEntry before; same_line(line, before = line_at(session, begin - 1));) {
    lldb::addr_t further = before.GetStartAddress().GetLoadAddress(target);
    if (further >= begin) break;
    begin = further;
  }
  return fmt::format("{:x};{:x}", begin, end);
}

lldb::addr_t pc_of(Session& session) { return session.thread().GetFrameAtIndex(0).GetPC(); }

}  // namespace tailtrace::lldb_plugin
