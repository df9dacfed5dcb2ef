// JSON as text in one line, without a line feed.
//
// Threading: a pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tailtrace {

// Names of files and symbols need not be UTF-8; JSON must.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tailtrace
