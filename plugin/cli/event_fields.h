// EventFields: what events of a PT decoder say, for programs: the fields of their packets, by
// names.
//
// Threading: one thread at a time.
#pragma once

#include <nlohmann/json.hpp>

#include "decoder/pt/decoder.h"

namespace tailtrace {

class EventFields {
 public:
  // Adds what an event says beyond which, where and when.
  void add(nlohmann::ordered_json& item, const pt::Event& event);
  // Keeps event data for the event that it belongs to.
  void keep(const pt::Event& event);
  // What comes belongs to nothing before: a gap.
  void forget() { data_.clear(); }

 private:
  nlohmann::ordered_json data_;
};

}  // namespace tailtrace
