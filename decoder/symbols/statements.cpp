#include "decoder/symbols/statements.h"

#include <algorithm>
#include <cstring>

namespace tailtrace {
namespace {

constexpr std::size_t kMaxRowsOfUnit = 1 << 22;

struct LineRow {
  Statement at;
  bool is_statement = false, ends_sequence = false;
  unsigned discriminator = 0;
};

LineRow row_of(Dwarf_Line* line) {
  LineRow row;
  Dwarf_Addr address = 0;
  int number = 0;
  if (dwarf_lineaddr(line, &address) == 0) row.at.address = address;
  if (dwarf_lineno(line, &number) == 0 && number > 0) row.at.line = static_cast<unsigned>(number);
  row.at.file = dwarf_linesrc(line, nullptr, nullptr);
  dwarf_linebeginstatement(line, &row.is_statement);
  dwarf_lineendsequence(line, &row.ends_sequence);
  dwarf_linediscriminator(line, &row.discriminator);
  return row;
}

// Takes rows in their order, and keeps those that GDB keeps (its dwarf2/read.c and buildsym.c).
class LineRows {
 public:
  void take(const LineRow& row) {
    const bool is_none = row.ends_sequence || row.at.line == 0 || row.at.file == nullptr;
    const bool is_other_file = !is_same_file(row.at.file, file_);
    const bool is_new_address = row.at.address != address_;
    if (is_new_address) has_statement_here_ = false;
    if (row.at.line != line_) has_discriminator_ = false;
    line_ = row.at.line;
    has_discriminator_ = has_discriminator_ || row.discriminator != 0;
    const bool is_aside =
        is_other_file && !is_new_address && !row.is_statement && has_statement_here_;
    address_ = row.at.address;
    has_statement_here_ = has_statement_here_ || row.is_statement;
    if (is_none || (is_other_file && !is_aside)) drop_empty();
    if (row.ends_sequence) begin_sequence();
    if (is_none || is_aside) return;
    if (is_other_file || row.at.line != last_line_ || !has_discriminator_) {
      rows_.push_back(row);
      last_line_ = row.at.line;
    }
    file_ = row.at.file;
  }

  std::vector<Statement> statements() const {
    std::vector<Statement> found;
    for (const LineRow& row : rows_)
      // Code that the linker left out ends up at 0.
      if (row.is_statement && row.at.address != 0) found.push_back(row.at);
    return found;
  }

 private:
  // A table may have a file twice.
  static bool is_same_file(const char* a, const char* b) {
    return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
  }

  void begin_sequence() {
    file_ = nullptr;
    last_line_ = 0;
  }

  // What of the file at hand begins where it ends.
  void drop_empty() {
    auto is_empty = [this](const LineRow& row) {
      return is_same_file(row.at.file, file_) && row.at.address == address_;
    };
    while (!rows_.empty() && is_empty(rows_.back())) rows_.pop_back();
  }

  std::vector<LineRow> rows_;
  const char* file_ = nullptr;
  std::uint64_t address_ = 0;
  unsigned line_ = 0, last_line_ = 0;  // of the row before, and of the one that was kept last
  bool has_discriminator_ = false, has_statement_here_ = false;
};

}  // namespace

std::vector<Statement> statements_of(Dwarf_Die unit) {
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&unit, &lines, &count) != 0) return {};
  LineRows rows;
  for (std::size_t i = 0; i < std::min(count, kMaxRowsOfUnit); ++i)
    rows.take(row_of(dwarf_onesrcline(lines, i)));
  std::vector<Statement> statements = rows.statements();
  std::ranges::stable_sort(statements, [](const Statement& a, const Statement& b) {
    return a.line != b.line ? a.line < b.line : a.address < b.address;
  });
  return statements;
}

Dwarf_Line* row_at(Dwarf_Die& unit, std::uint64_t address) {
  Dwarf_Line* last = dwarf_getsrc_die(&unit, address);
  if (last == nullptr || row_of(last).is_statement) return last;
  const std::uint64_t begin = row_of(last).at.address;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&unit, &lines, &count) != 0) return last;
  // They are in the order of their addresses.
  std::size_t low = 0;
  for (std::size_t high = count; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (row_of(dwarf_onesrcline(lines, middle)).at.address <= begin)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low != 0; --low) {
    Dwarf_Line* line = dwarf_onesrcline(lines, low - 1);
    const LineRow row = row_of(line);
    if (row.at.address != begin || row.ends_sequence || row.at.line == 0) break;
    if (row.is_statement) return line;
  }
  return last;
}

}  // namespace tailtrace
