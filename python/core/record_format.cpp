#include "python/core/record_format.h"

#include <fmt/format.h>

namespace tailtrace::python {

char letter_of(const RecordColumn& column) {
  switch (column.size_bytes) {
    case 1:
      return 'B';
    case 2:
      return 'H';
    case 4:
      return 'I';
    default:
      return 'Q';
  }
}

std::string record_format() {
  std::string text = "T{";
  for (const RecordColumn& column : kRecordColumns)
    text +=
        fmt::format("{}{}:{}:", column.size_bytes == 1 ? "" : "<", letter_of(column), column.name);
  return text + "}";
}

std::string record_struct() {
  std::string text = "<";
  for (const RecordColumn& column : kRecordColumns) text.push_back(letter_of(column));
  return text;
}

}  // namespace tailtrace::python
