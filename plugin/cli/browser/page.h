// Page: what the full-screen browser shows at one moment, as pieces of text at their places. Made
// of panes by a pure function, so that tests look at pages without a terminal.
//
//     +---------------------------+----------------------+
//     | title                                            |
//     | history                   | source               |
//     |   [-14]  cmp ...          |   87  if (x)         |
//     | > [-13]  jge ...          | > 88    return y;    |
//     |   [-12]  mov ...          +----------------------+
//     |                           | #0 Worker::step      |
//     |                           | #1 main              |
//     | message, or what the keys are                    |
//     +---------------------------+----------------------+
//
// Where a terminal is narrow the panes lie below each other; where it is too low for that, the
// history is alone.
//
// Threading: values and pure functions.
#pragma once

#include <string>
#include <vector>

namespace tailtrace {

// Meaning is never carried by the style alone.
enum class PageStyle : std::uint8_t { kPlain, kHeader, kCurrent, kGap, kBar, kFaint };

struct PageLine {
  std::string text;  // UTF-8 without control characters
  PageStyle style = PageStyle::kPlain;
};

// A line at its place, to be cut or filled with blanks to `columns`.
struct PagePiece {
  int row = 0, column = 0, columns = 0;
  PageLine line;
};

struct PageSize {
  int rows = 24, columns = 80;
};

// Where the panes are; those without rows are not shown.
struct PagePlan {
  struct Pane {
    int row = 0, column = 0, rows = 0, columns = 0;
  };
  PageSize size;
  Pane history, source, path;
};
PagePlan plan_page(PageSize size);

struct PageContent {
  std::string title;
  std::vector<PageLine> history, source, path;
  std::string bottom;
};

// Lines beyond their pane are left out.
std::vector<PagePiece> lay_out(const PagePlan& plan, const PageContent& content);

}  // namespace tailtrace
