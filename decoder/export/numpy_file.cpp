#include "decoder/export/numpy_file.h"

#include <fmt/format.h>

#include "decoder/history/runs.h"

namespace tailtrace {
namespace {

// The header's size, its ten leading bytes included, is a multiple of 64, so that what follows is
// aligned.
std::string header_of(std::uint64_t records) {
  constexpr std::size_t kAlign_bytes = 64;
  std::string text = fmt::format(
      "{{'descr': [('from', '<u8'), ('to', '<u8'), ('time', '<u8'), ('insns', '<u4'), "
      "('kind', 'u1'), ('flags', 'u1'), ('extra', '<u2')], 'fortran_order': False, "
      "'shape': ({},), }}",
      records);
  while ((10 + text.size() + 1) % kAlign_bytes != 0) text.push_back(' ');
  text.push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

// Calls `see` for each record, and returns how many there were.
template <class See>
std::uint64_t each_record(const History& history, Range range, See see) {
  std::uint64_t count = 0;
  const std::uint64_t last = range.last == history.newest() ? ~0ull : range.last;
  HistoryRuns walk(history, range.first);
  for (HistoryRun run; walk.next_record(run) && run.first <= last; ++count)
    if (!see(*run.record)) break;
  return count;
}

}  // namespace

void write_numpy_records(const History& history, Range range, const ByteSink& sink) {
  const std::uint64_t records =
      each_record(history, range, [](const BranchRecord&) { return true; });
  if (!sink(header_of(records))) return;
  each_record(history, range, [&](const BranchRecord& record) {
    return sink({reinterpret_cast<const char*>(&record), sizeof record});
  });
}

}  // namespace tailtrace
