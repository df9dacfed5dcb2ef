#include "plugin/cli/browser/page.h"

#include <algorithm>

namespace tailtrace {
namespace {

constexpr int kSideBySide_columns = 80;
constexpr int kStacked_rows = 15;  // title, history, two bars, source, path, bottom
constexpr int kSideBySide_rows = 8;

using Pane = PagePlan::Pane;

PagePlan side_by_side(PageSize size) {
  const int rows = size.rows - 2;
  const int left = size.columns * 11 / 20, right = size.columns - left - 1;
  const int source = (rows - 1) * 3 / 5;
  return {size,
          {1, 0, rows, left},
          {1, left + 1, source, right},
          {2 + source, left + 1, rows - source - 1, right}};
}

PagePlan stacked(PageSize size) {
  const int rows = size.rows - 4;  // a bar above each of the lower panes
  const int source = rows * 3 / 10, path = rows * 2 / 10;
  const int history = rows - source - path;
  return {size,
          {1, 0, history, size.columns},
          {2 + history, 0, source, size.columns},
          {3 + history + source, 0, path, size.columns}};
}

void put_pane(const Pane& pane, const std::vector<PageLine>& lines, std::vector<PagePiece>& page) {
  const auto shown = std::min(lines.size(), static_cast<std::size_t>(std::max(0, pane.rows)));
  for (std::size_t i = 0; i < shown; ++i)
    page.push_back({pane.row + static_cast<int>(i), pane.column, pane.columns, lines[i]});
}

void put_bar_above(const Pane& pane, std::vector<PagePiece>& page) {
  if (pane.rows == 0) return;
  std::string bar(static_cast<std::size_t>(pane.columns), '-');
  page.push_back({pane.row - 1, pane.column, pane.columns, {std::move(bar), PageStyle::kFaint}});
}

void put_bars(const PagePlan& plan, std::vector<PagePiece>& page) {
  put_bar_above(plan.path, page);
  if (plan.source.column == 0) {
    put_bar_above(plan.source, page);
    return;
  }
  for (int row = 1; row <= plan.history.rows; ++row)
    page.push_back({row, plan.source.column - 1, 1, {"|", PageStyle::kFaint}});
}

}  // namespace

PagePlan plan_page(PageSize size) {
  if (size.columns >= kSideBySide_columns && size.rows >= kSideBySide_rows)
    return side_by_side(size);
  if (size.rows >= kStacked_rows) return stacked(size);
  return {size, {1, 0, std::max(1, size.rows - 2), size.columns}, {}, {}};
}

std::vector<PagePiece> lay_out(const PagePlan& plan, const PageContent& content) {
  std::vector<PagePiece> page;
  page.push_back({0, 0, plan.size.columns, {content.title, PageStyle::kBar}});
  put_pane(plan.history, content.history, page);
  put_pane(plan.source, content.source, page);
  put_pane(plan.path, content.path, page);
  put_bars(plan, page);
  if (plan.size.rows > 1)
    page.push_back({plan.size.rows - 1, 0, plan.size.columns, {content.bottom, PageStyle::kBar}});
  return page;
}

}  // namespace tailtrace
