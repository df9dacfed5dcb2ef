#include "decoder/history/calls/path_listing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"

namespace tailtrace {
namespace {

std::string position_text(const History& history, std::uint64_t item, const PathListing& listing) {
  if (listing.from_oldest) return fmt::format("[{}]", history.from_oldest(item));
  return fmt::format("[{}]", history.from_newest(item));
}

std::string how(const PathFrame& frame, bool is_innermost) {
  if (is_innermost) return "";
  if (frame.event) return event_text(*frame.event) + " at ";
  if (frame.is_return) return "returned to ";
  return frame.tail_called ? "jumped to from " : "called from ";
}

// Where a frame goes on when what it called returns.
Address pc_of(const PathFrame& frame, const Instruction& insn, bool is_innermost) {
  if (frame.event) return frame.event->from;
  return is_innermost || frame.is_return ? insn.address : insn.next();
}

std::string frame_json(const Function& function, Address pc) {
  nlohmann::ordered_json json = {{"pc", fmt::format("{:#x}", pc.value)},
                                 {"function", function.name}};
  return json_text(json);
}

}  // namespace

void list_path(const History& history, Symbolizer& symbols, const CallPath& path,
               std::uint64_t item, const PathListing& listing, const LineSink& sink) {
  HistoryCursor cursor(history);
  bool is_innermost = true;
  for (const PathFrame& frame : path.frames) {
    cursor.seek(frame.item);
    const Address where = frame.event ? frame.event->from : cursor.item().instruction.address;
    std::string time;
    if (is_innermost && cursor.item().time != 0)
      time = fmt::format("  time {}", cursor.item().time);
    if (!sink(fmt::format("{}{}  {}{}{}", is_innermost ? "  " : "    ",
                          position_text(history, frame.item, listing), how(frame, is_innermost),
                          where_text(symbols, where, cursor.item().epoch), time)))
      return;
    is_innermost = false;
  }
  for (const OlderCaller& caller : path.older)
    if (!sink(fmt::format("    [before]  called from {}",
                          where_text(symbols, caller.address, kNewestEpoch))))
      return;
  if (path.cut) return void(sink(listing.cut_note));
  if (path.frames.empty() || !path.older.empty()) return;
  // The outermost call that is known need not be the first.
  if (history.from_oldest(item) >= CallHistory::kMaxSegments)
    sink(fmt::format("    what called that is further back than the {} items that are looked at",
                     CallHistory::kMaxSegments));
  else if (!history.complete())
    sink("    what called that is not in the history");
}

void list_frames_json(const History& history, const CallPath& path, const LineSink& sink) {
  HistoryCursor cursor(history);
  bool is_innermost = true;
  for (const PathFrame& frame : path.frames) {
    if (frame.tail_called) continue;
    cursor.seek(frame.item);
    const Address pc = pc_of(frame, cursor.item().instruction, is_innermost);
    if (!sink(frame_json(*frame.function, pc))) return;
    is_innermost = false;
  }
  for (const OlderCaller& caller : path.older)
    if (!sink(frame_json(*caller.function, caller.address + 1))) return;
}

}  // namespace tailtrace
