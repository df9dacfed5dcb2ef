// What events of a PT decoder say, for programs: the fields of their packets, by names.
//
// Threading: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "decoder/pt/decoder.h"

namespace tailtrace {

// Adds what an event says beyond which, where and when; of a CFE with the event data that are part
// of it.
void add_event_fields(nlohmann::ordered_json& item, const pt::Event& event,
                      const std::vector<pt::Event>& data);

}  // namespace tailtrace
