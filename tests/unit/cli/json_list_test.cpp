#include "plugin/cli/json_list.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_outcome.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

const OrderedJson kHead = {{"schema", "all/1"}, {"of", "us"}};

std::string listed(JsonForm form, std::initializer_list<std::string_view> objects) {
  CapturedFile file;
  LineOutput out(file.file());
  JsonList list(out, form, kHead, "items");
  for (std::string_view object : objects) list.put(object);
  list.finish();
  out.flush();
  return file.text();
}

TEST(JsonList, ADocumentHasAHeadAndAnObjectALine) {
  EXPECT_EQ(listed(JsonForm::kDocument, {R"({"a":1})", R"({"b":[2]})"}),
            R"({"schema":"all/1","of":"us","items":[)"
            "\n"
            R"({"a":1},)"
            "\n"
            R"({"b":[2]})"
            "\n]}\n");
}

TEST(JsonList, ALineIsAnObjectOfItsOwn) {
  EXPECT_EQ(listed(JsonForm::kLines, {R"({"a":1})", R"({"b":[2]})"}),
            R"({"schema":"all/1","of":"us","a":1})"
            "\n"
            R"({"schema":"all/1","of":"us","b":[2]})"
            "\n");
}

TEST(JsonList, NothingIsADocumentAndNoLine) {
  EXPECT_EQ(OrderedJson::parse(listed(JsonForm::kDocument, {})).at("items"), OrderedJson::array());
  EXPECT_EQ(listed(JsonForm::kLines, {}), "");
}

}  // namespace
}  // namespace tailtrace
