#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plugin/cli/commands.h"
#include "plugin/cli/manual.h"

namespace tailtrace {
namespace {

using nlohmann::json;

// What `tailtrace help VERB` shows, for programs.
TEST(TableJson, HasVerbsOptionsAndChoices) {
  const json table = json::parse(table_json(all_commands()));
  EXPECT_EQ(table["schema"], "tailtrace.verbs/1");
  EXPECT_EQ(table["verbs"].size(), all_commands().size());
  auto find = [](const json& all, auto is_it) {
    return *std::find_if(all.begin(), all.end(), is_it);
  };
  json exported = find(table["verbs"], [](const json& verb) { return verb["name"] == "export"; });
  EXPECT_EQ(exported["usage"], "--format=FORMAT [OPTIONS] PATH");
  json output = find(exported["options"], [](const json& one) { return one["value"] == "FILE"; });
  EXPECT_THAT(output["names"], testing::ElementsAre("-o", "--output"));
  json format =
      find(exported["options"], [](const json& one) { return one["names"][0] == "--format"; });
  EXPECT_THAT(format["choices"], testing::Contains("chrome"));
}

}  // namespace
}  // namespace tailtrace
