#include "plugin/cli/browser/page.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

PageContent full_content() {
  PageContent content{"title", {}, {}, {}, "bottom"};
  for (auto* pane : {&content.history, &content.source, &content.path})
    pane->assign(1000, {"text", PageStyle::kPlain});
  return content;
}

// How often each place of the screen is written to.
std::vector<int> writes(PageSize size) {
  std::vector<int> counts(static_cast<std::size_t>(size.rows * size.columns));
  for (const PagePiece& piece : lay_out(plan_page(size), full_content())) {
    EXPECT_GE(piece.row, 0);
    EXPECT_LT(piece.row, std::max(size.rows, 2));
    EXPECT_LE(piece.column + piece.columns, size.columns);
    for (int i = 0; i < piece.columns && piece.row < size.rows; ++i)
      ++counts[static_cast<std::size_t>(piece.row * size.columns + piece.column + i)];
  }
  return counts;
}

TEST(Page, FillsScreensOfAllSizesOnce) {
  for (int rows = 3; rows <= 60; ++rows)
    for (int columns = 1; columns <= 200; columns += 3)
      for (int count : writes({rows, columns})) ASSERT_EQ(count, 1) << rows << " x " << columns;
}

TEST(Page, ShowsAllPanesAt80By24) {
  PagePlan plan = plan_page({24, 80});
  EXPECT_GE(plan.history.rows, 20);
  EXPECT_GE(plan.history.columns, 40);
  EXPECT_GE(plan.source.rows, 5);
  EXPECT_GE(plan.path.rows, 5);
}

TEST(Page, IsTheHistoryAloneWhereThereIsNoRoom) {
  for (PageSize size : {PageSize{5, 200}, PageSize{10, 40}, PageSize{1, 1}}) {
    PagePlan plan = plan_page(size);
    EXPECT_GE(plan.history.rows, 1);
    EXPECT_EQ(plan.source.rows + plan.path.rows, 0);
  }
}

}  // namespace
}  // namespace tailtrace
