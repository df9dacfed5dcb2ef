// Where exports put what they make. False from a sink: enough.
//
// Threading: called by whoever exports.
#pragma once

#include <functional>
#include <string_view>

namespace tailtrace {

using TextSink = std::function<bool(std::string_view line)>;  // without its line feed
using ByteSink = std::function<bool(std::string_view bytes)>;

}  // namespace tailtrace
