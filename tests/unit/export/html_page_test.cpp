#include "decoder/export/html_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decoder/history/listing.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

// What a name must not be able to do.
constexpr char kEvil[] = "</script><script>alert(1)</script><!--\"'&\xff\xe2\x80\xa8";

// A program whose functions are all called so.
class EvilSymbols : public ToySymbols {
 public:
  const Function& function_at(Address address) override {
    Function& function = functions_[ToySymbols::function_at(address).begin];
    function = ToySymbols::function_at(address);
    function.name = kEvil + function.name;
    return function;
  }

 private:
  std::map<Address, Function> functions_;
};

struct Page {
  std::string text;
  nlohmann::json data;
};

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Page page_of(const History& history, Symbolizer& symbols, const std::string& source) {
  const Range all{1, history.size()};
  auto calls = CallHistory::make(history, symbols, all);
  EXPECT_TRUE(calls);
  Page page;
  HtmlPage html([&](std::string_view line) {
    page.text.append(line).append("\n");
    return true;
  });
  html.begin(source);
  html.add(history, *calls, find_loops(history, all), symbols);
  html.end();
  constexpr std::string_view kTag = "id=\"data\">";
  const std::size_t begin = page.text.find(kTag) + kTag.size();
  const std::size_t end = page.text.find("</script>", begin);
  page.data = nlohmann::json::parse(page.text.substr(begin, end - begin));
  return page;
}

TEST(HtmlPage, TakesNoNameForMarkup) {
  History history(ToyProgram(3, 6, 6).run(5, 3000, true).snapshot);
  EvilSymbols symbols;
  Page page = page_of(history, symbols, kEvil);
  EXPECT_EQ(count(page.text, "<script"), 2u);
  EXPECT_EQ(count(page.text, "</script>"), 2u);
  EXPECT_EQ(count(page.text, "<!--"), 0u);
  EXPECT_EQ(count(page.text, "alert(1)<"), 0u);
  ASSERT_FALSE(page.data["names"].empty());
  std::string name = page.data["names"][0];
  EXPECT_TRUE(name.starts_with("</script><script>alert(1)</script><!--\"'&")) << name;
}

TEST(HtmlPage, LoadsNothing) {
  History history(ToyProgram(3, 6, 6).run(5, 3000, true).snapshot);
  ToySymbols symbols;
  Page page = page_of(history, symbols, "run.tt");
  for (const char* part : {"http:", "https:", " src=", " href=", "url(", "import(", "fetch("})
    EXPECT_EQ(count(page.text, part), 0u) << part;
  EXPECT_EQ(count(page.text, "default-src 'none'"), 1u);
}

TEST(HtmlPage, HasEveryCallAndLoop) {
  History history(ToyProgram(3, 6, 6).run(5, 3000, true).snapshot);
  ToySymbols symbols;
  const Range all{1, history.size()};
  Page page = page_of(history, symbols, "run.tt");
  const nlohmann::json& thread = page.data["threads"][0];
  EXPECT_EQ(thread["newest"], history.newest());
  EXPECT_EQ(thread["older_calls"], 0);
  std::vector<Loop> loops = find_loops(history, all);
  ASSERT_EQ(thread["loops"].size(), loops.size() * 5);
  std::size_t left = 0;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    EXPECT_EQ(thread["loops"][i * 5 + 2], loops[i].rounds);
    const int exit = thread["loops"][i * 5 + 4];
    EXPECT_EQ(exit == -1, loops[i].exit.is_null());
    if (exit == -1) continue;
    ++left;
    EXPECT_EQ(page.data["names"][exit], where_text(symbols, loops[i].exit, loops[i].epoch));
  }
  EXPECT_GT(left, 0u);
  // A call lies in another one, or apart from it; what lies inside is deeper.
  std::vector<std::pair<std::uint64_t, std::int64_t>> open;  // last item and level
  ASSERT_EQ(thread["calls"].size() % 5, 0u);
  ASSERT_FALSE(thread["calls"].empty());
  for (std::size_t i = 0; i < thread["calls"].size(); i += 5) {
    const std::uint64_t first = thread["calls"][i], last = thread["calls"][i + 1];
    const std::int64_t level = thread["calls"][i + 2];
    while (!open.empty() && open.back().first < first) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(last, open.back().first);
      EXPECT_GT(level, open.back().second);
    }
    open.emplace_back(last, level);
  }
}

TEST(HtmlPage, WithoutAThreadIsOneTooAndStopsWhenItIsTold) {
  std::string text;
  HtmlPage empty([&](std::string_view line) { return text.append(line), true; });
  empty.begin("x");
  empty.end();
  EXPECT_TRUE(text.ends_with("</html>"));
  int lines = 0;
  HtmlPage full([&](std::string_view) { return ++lines < 2; });
  full.begin("x");
  full.end();
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace tailtrace
