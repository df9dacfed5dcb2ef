#include "plugin/lldb/back.h"

#include <fmt/format.h>

#include "plugin/lldb/frames.h"
#include "plugin/lldb/moves.h"
#include "plugin/lldb/positions.h"

namespace tailtrace::lldb_plugin {
namespace {

// Functions without source that one step back goes out of, one after the other.
constexpr int kMaxOuts = 100;

Result<void> move_and_show(Session& session, const std::string& step) {
  Moving moving(session);
  auto moved = move(session, step);
  if (!moved) return fail(std::move(moved.error()));
  return show(session, *moved);
}

}  // namespace

Result<void> back_instruction(Session& session) { return move_and_show(session, "insn"); }

Result<void> back_out(Session& session) {
  return move_and_show(session, "out" + code_of_function(session, pc_of(session)));
}

Result<void> back_to_breakpoint(Session& session) { return move_and_show(session, "breakpoint"); }

Result<void> leave(Session& session, std::uint64_t functions) {
  return move_and_show(
      session, fmt::format("leave;{}{}", functions, code_of_function(session, pc_of(session))));
}

Result<void> go_to(Session& session, std::int64_t position) {
  Moving moving(session, position != kPresent);
  auto moved = move(session, fmt::format("goto;{}", position));
  if (!moved) return fail(std::move(moved.error()));
  if (!moved->moved)
    return fail(ErrorCode::kNegative, position == kPresent
                                          ? "the thread is in the present already"
                                          : fmt::format("the thread is at {} already", position));
  if (position == kPresent) show_own_frames(session);
  return show(session, *moved);
}

Result<void> back_line(Session& session, bool into) {
  Moving moving(session);
  const bool had_line = line_at(session, pc_of(session)).IsValid();
  auto last = move(session, into ? "insn" : "over" + code_of_function(session, pc_of(session)));
  if (!last || !last->moved) return last ? show(session, *last) : fail(std::move(last.error()));
  const std::int64_t first = standing(session);
  for (int outs = 0; outs < kMaxOuts; ++outs) {
    std::string code = code_of_line(session, pc_of(session));
    // Nobody wants to be shown a function without source on the way: back to its call.
    const std::string function = code_of_function(session, pc_of(session));
    auto next =
        move(session, (code.empty() ? "out" : (into ? "into;" : "range;") + code) + function);
    if (!next) return fail(std::move(next.error()));
    if (!next->moved) break;
    last = std::move(next);
    if (!code.empty() && !line_at(session, pc_of(session)).IsValid()) continue;
    if (code.empty() || code != code_of_line(session, pc_of(session))) continue;
    if (line_at(session, pc_of(session)).GetLine() != 0) break;
    next = move(session, into ? "insn" : "over" + function);  // the compiler's own code has no line
    if (!next) return fail(std::move(next.error()));
    if (!next->moved) break;
    last = std::move(next);
  }
  // Where nothing has source, a step is that of an instruction.
  if (!had_line && !line_at(session, pc_of(session)).IsValid() && standing(session) != first)
    last = move(session, fmt::format("goto;{}", first));
  return last ? show(session, *last) : fail(std::move(last.error()));
}

}  // namespace tailtrace::lldb_plugin
