// The parts of an HTML page that are the same in all: around its data, how it looks, what it does.
//
// Threading: constants.
#pragma once

#include <string_view>

namespace tailtrace {

// Up to the data, which is JSON.
extern const std::string_view kPageHead;
// Behind it.
extern const std::string_view kPageStyleAndBody;
extern const std::string_view kPageProgram;

}  // namespace tailtrace
