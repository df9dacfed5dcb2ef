// JSON as text in one line, without a line feed.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tailtrace {

// Names of files and symbols need not be UTF-8; JSON must.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What such a name is called by those who read it there.
inline std::string name_in_json(std::string_view name) {
  return nlohmann::json::parse(json_text(nlohmann::json(name))).get<std::string>();
}

}  // namespace tailtrace
