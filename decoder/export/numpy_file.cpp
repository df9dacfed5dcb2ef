#include "decoder/export/numpy_file.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "decoder/export/range_records.h"
#include "decoder/record/record_columns.h"

namespace tailtrace {
namespace {

// The header's size, its ten leading bytes included, is a multiple of 64, so that what follows is
// aligned.
std::string header_of(std::uint64_t records) {
  constexpr std::size_t kAlign_bytes = 64;
  std::vector<std::string> columns;
  for (const RecordColumn& column : kRecordColumns)
    columns.push_back(fmt::format("('{}', '{}u{}')", column.name, column.size_bytes == 1 ? "" : "<",
                                  column.size_bytes));
  std::string text = fmt::format("{{'descr': [{}], 'fortran_order': False, 'shape': ({},), }}",
                                 fmt::join(columns, ", "), records);
  while ((10 + text.size() + 1) % kAlign_bytes != 0) text.push_back(' ');
  text.push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

}  // namespace

void write_numpy_records(const History& history, Range range, const ByteSink& sink) {
  const std::uint64_t records =
      each_record_of(history, range, [](const BranchRecord&) { return true; });
  if (!sink(header_of(records))) return;
  each_record_of(history, range, [&](const BranchRecord& record) {
    return sink({reinterpret_cast<const char*>(&record), sizeof record});
  });
}

}  // namespace tailtrace
