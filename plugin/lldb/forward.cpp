#include "plugin/lldb/forward.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "plugin/lldb/moves.h"
#include "plugin/lldb/positions.h"

namespace tailtrace::lldb_plugin {
namespace {

// Parts of a line that one step goes over, one after the other.
constexpr int kMaxParts = 1000;
// Of code that finds a function of a library.
constexpr int kMaxDetours = 20;
constexpr const char* kAvoided = "settings show target.process.thread.step-avoid-regexp";

std::string code_between(lldb::addr_t begin, lldb::addr_t end) {
  return fmt::format("{:x};{:x}", begin, end);
}

// The functions that were put into the one at `pc` there, outermost first.
std::vector<lldb::SBBlock> inlined_at(Session& session, lldb::addr_t pc) {
  std::vector<lldb::SBBlock> found;
  lldb::SBBlock block = session.target().ResolveLoadAddress(pc).GetBlock();
  for (block = block.GetContainingInlinedBlock(); block.IsValid();
       block = block.GetParent().GetContainingInlinedBlock())
    found.insert(found.begin(), block);
  return found;
}

lldb::addr_t begin_of(Session& session, lldb::SBBlock block, lldb::addr_t pc) {
  lldb::SBTarget target = session.target();
  const std::uint32_t range = block.GetRangeIndexForBlockAddress(target.ResolveLoadAddress(pc));
  return block.GetRangeStartAddress(range).GetLoadAddress(target);
}

// How many of the innermost functions at `pc` begin there: LLDB shows what they were put into.
std::size_t begin_at(Session& session, lldb::addr_t pc) {
  std::size_t count = 0;
  const std::vector<lldb::SBBlock> inlined = inlined_at(session, pc);
  for (auto block = inlined.rbegin(); block != inlined.rend(); ++block, ++count)
    if (begin_of(session, *block, pc) != pc) break;
  return count;
}

// What is stepped from: the frame that is shown, unless it is a caller.
struct Base {
  std::uint32_t shown = 0;  // the frame's number
  std::size_t levels = 0;   // functions that it is put into
  std::size_t hidden = 0;   // functions put into it there
  lldb::addr_t block = 0;   // where the innermost of the levels has its first code
  lldb::SBLineEntry line;
};

lldb::addr_t first_of(Session& session, const std::vector<lldb::SBBlock>& inlined,
                      std::size_t levels) {
  if (levels == 0 || levels > inlined.size()) return 0;
  lldb::SBBlock block = inlined[levels - 1];
  return block.GetRangeStartAddress(0).GetLoadAddress(session.target());
}

Base base_of(Session& session) {
  lldb::SBThread thread = session.thread();
  std::uint32_t levels = 0;
  while (thread.GetFrameAtIndex(levels).IsInlined()) ++levels;
  std::uint32_t shown = thread.GetSelectedFrame().GetFrameID();
  if (shown > levels) shown = 0;
  levels -= shown;
  const std::vector<lldb::SBBlock> inlined = inlined_at(session, pc_of(session));
  return {shown, levels, inlined.size() - std::min<std::size_t>(levels, inlined.size()),
          first_of(session, inlined, levels), thread.GetFrameAtIndex(shown).GetLineEntry()};
}

// Where the thread stands, to whoever stands in the function of the base.
struct Part {
  lldb::SBLineEntry line;
  std::string code;      // of the line, or of what was put into it
  bool begins = false;   // it stands where that begins
  std::size_t deep = 0;  // functions that were put into it
};

// Nothing: the function of the base was left.
std::optional<Part> part_at(Session& session, const Base& base) {
  lldb::SBTarget target = session.target();
  const lldb::addr_t pc = pc_of(session);
  const std::vector<lldb::SBBlock> inlined = inlined_at(session, pc);
  if (first_of(session, inlined, base.levels) != base.block) return std::nullopt;
  Part part{line_at(session, pc), code_of_line(session, pc), false, inlined.size() - base.levels};
  lldb::addr_t begin = part.line.GetStartAddress().GetLoadAddress(target);
  if (part.deep > 0) {
    lldb::SBBlock block = inlined[base.levels];
    part.line.SetFileSpec(block.GetInlinedCallSiteFile());
    part.line.SetLine(block.GetInlinedCallSiteLine());
    const std::uint32_t range = block.GetRangeIndexForBlockAddress(target.ResolveLoadAddress(pc));
    begin = block.GetRangeStartAddress(range).GetLoadAddress(target);
    part.code = code_between(begin, block.GetRangeEndAddress(range).GetLoadAddress(target));
  } else if (base.levels > 0) {
    part.code = code_between(begin, part.line.GetEndAddress().GetLoadAddress(target));
  }
  part.begins = begin == pc;
  if (!part.line.IsValid() || part.code.empty()) part.code = code_between(pc, pc + 1);
  return part;
}

bool is_done(const Base& base, const std::optional<Part>& part) {
  if (!part || !base.line.IsValid()) return true;
  return part->line.IsValid() && part->line.GetLine() != 0 && part->begins &&
         !same_line(base.line, part->line);
}

Result<void> select_frame(Session& session, std::size_t number) {
  auto shown = session.command(fmt::format("frame select {}", number));
  if (!shown) return fail(std::move(shown.error()));
  session.print(*shown);
  return {};
}

// A function's name without what it returns, as of templates, and takes.
std::string_view qualified(std::string_view name) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool takes = name[at] == '(' && !name.substr(at).starts_with("(anonymous");
    if (takes && depth == 0) return name.substr(begin, at - begin);
    if (name[at] == '<' || name[at] == '(') ++depth;
    if (name[at] == '>' || name[at] == ')') --depth;
    if (name[at] == ' ' && depth == 0) begin = at + 1;
    if (name.substr(at).starts_with("operator") && depth == 0) break;
  }
  return name.substr(begin);
}

// Functions that LLDB is told not to stop in.
bool is_avoided(Session& session, const char* name) {
  const std::string shown = session.command(kAvoided).value_or("");
  const std::size_t at = shown.find(" = ");
  if (name == nullptr || at == shown.npos) return false;
  const std::string pattern = shown.substr(at + 3, shown.find('\n', at) - at - 3);
  regex_t compiled;
  if (pattern.empty() || regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
    return false;
  const std::string plain(qualified(name));
  const bool is = regexec(&compiled, plain.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return is;
}

// The code around `pc` that leads on to a function of a library, and is none; empty: it is one.
std::string detour_at(Session& session, lldb::addr_t pc) {
  lldb::SBTarget target = session.target();
  lldb::SBAddress address = target.ResolveLoadAddress(pc);
  lldb::SBSection section = address.GetSection();
  const std::string_view name = section.GetName() == nullptr ? "" : section.GetName();
  const lldb::addr_t begin = section.GetLoadAddress(target);
  lldb::SBSymbol symbol = address.GetSymbol();
  if (name.starts_with(".plt") && symbol.GetType() == lldb::eSymbolTypeTrampoline)
    return code_between(begin, begin + section.GetByteSize());
  const std::string_view function = symbol.GetName() == nullptr ? "" : symbol.GetName();
  if (!function.starts_with("_dl_runtime_resolve")) return {};
  return code_between(symbol.GetStartAddress().GetLoadAddress(target),
                      symbol.GetEndAddress().GetLoadAddress(target));
}

// Whether `pc` is in a linkage table, at a function that is chosen as the program starts (memcpy):
// LLDB runs to what chooses it, and so past it.
bool is_chosen(Session& session, lldb::addr_t pc) {
  lldb::SBTarget target = session.target();
  lldb::SBSymbol symbol = target.ResolveLoadAddress(pc).GetSymbol();
  return symbol.GetType() == lldb::eSymbolTypeTrampoline &&
         target.FindSymbols(symbol.GetName(), lldb::eSymbolTypeResolver).GetSize() != 0;
}

// The code before its first line, where LLDB does not stop; empty: there is none.
std::string prologue_at(Session& session, lldb::addr_t pc) {
  lldb::SBFunction function = session.target().ResolveLoadAddress(pc).GetFunction();
  const bool begins = function.GetStartAddress().GetLoadAddress(session.target()) == pc;
  const std::uint32_t size = begins ? function.GetPrologueByteSize() : 0;
  return size == 0 ? std::string() : code_between(pc, pc + size);
}

// Stands at the begin of a function that was called. True: that is where it is to stop; else behind
// the call: which stack it returns to is known where it was called.
Result<bool> enter_function(Session& session, Moved& moved) {
  const std::int64_t call = standing(session) - 1;
  auto go = [&](const std::string& step) -> Result<void> {
    auto next = move(session, step);
    if (!next) return fail(std::move(next.error()));
    if (next->moved) moved = std::move(*next);
    return {};
  };
  const bool passes = is_chosen(session, pc_of(session));
  for (int detours = 0; detours < kMaxDetours && moved.way != "end"; ++detours) {
    const std::string detour = detour_at(session, pc_of(session));
    if (detour.empty()) break;
    if (auto gone = go("pass;" + detour); !gone) return fail(std::move(gone.error()));
  }
  if (moved.way == "end") return true;
  const lldb::addr_t pc = pc_of(session);
  lldb::SBFunction function = session.target().ResolveLoadAddress(pc).GetFunction();
  const bool stops =
      !passes && line_at(session, pc).IsValid() && !is_avoided(session, function.GetName());
  const std::string prologue = stops ? prologue_at(session, pc) : std::string();
  if (stops && prologue.empty()) return true;
  if (!stops)
    if (auto gone = go(fmt::format("goto;{}", call)); !gone) return fail(std::move(gone.error()));
  const lldb::addr_t from = pc_of(session);
  auto gone = go("pass;" + (stops ? prologue : code_between(from, from + 1)) +
                 code_of_function(session, from));
  if (!gone) return fail(std::move(gone.error()));
  return stops;
}

// Whether it ends in the midst of a line: elsewhere LLDB shows what begins there as yet to be
// called.
struct Stop {
  Moved moved;
  bool in_midst = false;
  std::size_t entered = 0;  // functions that were put into the one at hand
};

Result<Stop> step_line(Session& session, const Base& base, bool into) {
  Stop stop;
  Moved& last = stop.moved;
  std::optional<Part> part = part_at(session, base);
  for (int parts = 0; part && parts < kMaxParts; ++parts) {
    const std::string function = code_of_function(session, pc_of(session));
    auto next = move(session, (into ? "enter;" : "pass;") + part->code + function);
    if (!next) return fail(std::move(next.error()));
    if (!next->moved) break;
    last = std::move(*next);
    if (last.way == "call") {
      auto stops = enter_function(session, last);
      if (!stops) return fail(std::move(stops.error()));
      if (*stops) return stop;
    }
    stop.in_midst = last.way == "end";
    if (stop.in_midst) break;
    part = part_at(session, base);
    if (is_done(base, part)) break;
    stop.entered = into && part->deep > 0 && part->begins ? 1 : 0;
    if (stop.entered != 0) break;
  }
  return stop;
}

Result<bool> step_and_show(Session& session, const Base& base, bool into) {
  Moving moving(session);
  auto stop = step_line(session, base, into);
  if (!stop) return fail(std::move(stop.error()));
  if (auto shown = show(session, stop->moved); !shown) return fail(std::move(shown.error()));
  const std::size_t begin = stop->in_midst ? 0 : begin_at(session, pc_of(session));
  if (begin <= stop->entered) return true;
  return select_frame(session, begin - stop->entered).map([] { return true; });
}

}  // namespace

Result<bool> next_line(Session& session) { return step_and_show(session, base_of(session), false); }

Result<bool> step_into(Session& session) {
  const Base base = base_of(session);
  if (!base.line.IsValid() || (base.hidden > 0 && base.shown == 0)) return false;
  const bool is_hidden = base.shown > 0 && begin_at(session, pc_of(session)) >= base.shown;
  if (is_hidden) return select_frame(session, base.shown - 1).map([] { return true; });
  return step_and_show(session, base, true);
}

}  // namespace tailtrace::lldb_plugin
