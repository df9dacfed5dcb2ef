#include "plugin/cli/event_fields.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "decoder/pt/packets/packet.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {
namespace {

using nlohmann::ordered_json;
using pt::Event;
using pt::EventKind;

// Numbers of up to 64 bits, which are not safe in JSON as such.
std::string hex(std::uint64_t value) { return json_address({value}); }

unsigned low_byte(std::uint64_t value) { return static_cast<unsigned>(value & 0xff); }

unsigned bits_of(CodeMode mode) {
  switch (mode) {
    case CodeMode::k16:
      return 16;
    case CodeMode::k32:
      return 32;
    case CodeMode::k64:
      break;
  }
  return 64;
}

void add_power_fields(ordered_json& item, const Event& event) {
  const unsigned first = pt::c_state(event.payload & 0xff),
                 second = pt::c_state(event.payload >> 8);
  if (event.kind == EventKind::kPwre) {
    item["state"] = first;
    item["sub_state"] = second;
    item["hardware"] = event.has(pt::kEventHardware);
    return;
  }
  item["last_state"] = first;
  item["deepest_state"] = second;
  item["interrupt"] = event.has(pt::kEventInterrupt);
  item["store"] = event.has(pt::kEventStore);
  item["autonomous"] = event.has(pt::kEventAutonomous);
}

std::string name_of_data(std::uint8_t type) {
  constexpr const char* kNames[] = {"cr2", "vmxq", "vmxr"};  // by EvdType
  return type < std::size(kNames) ? kNames[type] : fmt::format("evd {}", type);
}

void add_fields_of_packet(ordered_json& item, const Event& event) {
  switch (event.kind) {
    case EventKind::kExecMode:
      item["bits"] = bits_of(event.mode);
      break;
    case EventKind::kTransaction:
      item["speculative"] = event.has(pt::kEventSpeculative);
      item["aborted"] = event.has(pt::kEventAborted);
      break;
    case EventKind::kPaging:
    case EventKind::kAsyncPaging:
      item["value"] = hex(event.payload);
      item["non_root"] = event.has(pt::kEventNonRoot);
      break;
    case EventKind::kPtwrite:
    case EventKind::kBlock:
      item["value"] = hex(event.payload);
      item["size_bytes"] = event.size_bytes;
      break;
    case EventKind::kBlockItem:
      item["value"] = hex(event.payload);
      item["id"] = event.size_bytes;
      break;
    case EventKind::kVmcs:
    case EventKind::kAsyncVmcs:
    case EventKind::kCbr:
    case EventKind::kMnt:
      item["value"] = hex(event.payload);
      break;
    case EventKind::kMwait:
      item["hints"] = hex(event.payload & 0xffffffff);
      item["extensions"] = hex(event.payload >> 32);
      break;
    case EventKind::kPwre:
    case EventKind::kPwrx:
      add_power_fields(item, event);
      break;
    case EventKind::kControlFlow:
      item["type"] = low_byte(event.payload);
      item["vector"] = low_byte(event.payload >> 8);
      break;
    case EventKind::kInterruptFlag:
      item["set"] = event.payload != 0;
      break;
    case EventKind::kTrigger:
      item["lines"] = low_byte(event.payload);
      item["several"] = event.has(pt::kEventSeveral);
      break;
    default:
      break;
  }
}

}  // namespace

void add_event_fields(ordered_json& item, const Event& event, const std::vector<Event>& data) {
  add_fields_of_packet(item, event);
  if (event.kind != EventKind::kControlFlow) return;
  for (const Event& one : data) item["data"][name_of_data(one.size_bytes)] = hex(one.payload);
}

}  // namespace tailtrace
