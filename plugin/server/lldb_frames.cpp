// The calls that were open where LLDB stands in the past.
#include <fmt/format.h>

#include "decoder/base/file.h"
#include "decoder/history/call_path.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/server/lldb_replay.h"

namespace tailtrace {
namespace {

// More are more than a packet should hold.
constexpr std::size_t kMaxFrames = 100;
constexpr std::size_t kMaxMaps_bytes = 16 << 20;

std::unique_ptr<Symbolizer> symbols_of(ThreadId thread) {
  Result<Bytes> maps = read_file(fmt::format("/proc/{}/maps", thread.pid), kMaxMaps_bytes);
  if (!maps) return std::make_unique<NoSymbols>();
  return std::make_unique<ProcessSymbols>(parse_maps(as_text(*maps)));
}

}  // namespace

std::string LldbReplay::frames() {
  const History& history = *past_->history;
  const std::uint64_t here = past_->at->item().number;
  std::string text = fmt::format("{:x}", past_->at->item().instruction.address.value);
  if (!past_->symbols) past_->symbols = symbols_of(past_->thread);
  auto calls = calls_up_to(history, *past_->symbols, here);
  if (!calls) return text;
  CallPath path = call_path(*calls, here, kMaxFrames);
  HistoryCursor cursor(history);
  for (std::size_t i = 1; i < path.frames.size(); ++i) {
    cursor.seek(path.frames[i].item);
    if (cursor.valid() && !cursor.item().is_gap)
      text += fmt::format(";{:x}", cursor.item().instruction.address.value);
  }
  return text;
}

}  // namespace tailtrace
