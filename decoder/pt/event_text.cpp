#include "decoder/pt/event_text.h"

#include <fmt/format.h>

#include <utility>

#include "decoder/pt/libipt_events.h"
#include "decoder/pt/packets/packet.h"

namespace tailtrace::pt {
namespace {

constexpr std::size_t kMaxData = 16;

std::string_view bits_of(CodeMode mode) {
  switch (mode) {
    case CodeMode::k16:
      return "16-bit";
    case CodeMode::k32:
      return "32-bit";
    case CodeMode::k64:
      return "64-bit";
  }
  return "<invalid>";
}

std::string transaction(const Event& event) {
  if (event.has(kEventAborted)) return "tsx abort";
  return event.has(kEventSpeculative) ? "tsx begin" : "tsx commit";
}

std::string power_exit(const Event& event) {
  return fmt::format("pwrx {}{}{}c{} (c{})", event.has(kEventInterrupt) ? "int: " : "",
                     event.has(kEventStore) ? "st: " : "",
                     event.has(kEventAutonomous) ? "hw: " : "", c_state(event.payload & 0xff),
                     c_state(event.payload >> 8));
}

std::string trigger(const Event& event) {
  return fmt::format("trig {:02x}{}", event.payload & 0xff,
                     event.has(kEventSeveral) ? ", mult" : "");
}

std::string control_flow_words(const Event& event) {
  auto vector = static_cast<unsigned>(event.payload >> 8 & 0xff);
  switch (event.payload & 0xff) {
    case kCfeInterrupt:
      return fmt::format("interrupt {}", vector);
    case kCfeIret:
      return "iret";
    case kCfeSmi:
      return "smi";
    case kCfeRsm:
      return "rsm";
    case kCfeSipi:
      return fmt::format("sipi: {:x}", vector);
    case kCfeInit:
      return "init";
    case kCfeVmEntry:
      return "vmentry";
    case kCfeVmExit:
      return "vmexit";
    case kCfeVmExitInterrupt:
      return fmt::format("vmexit, intr: {}", vector);
    case kCfeShutdown:
      return "shutdown";
    case kCfeUserInterrupt:
      return fmt::format("uintr {}", vector);
    case kCfeUiret:
      return "uiret";
    default:
      return fmt::format("control flow {}, {}", event.payload & 0xff, vector);
  }
}

std::string addresses(const Event& event) {
  bool branches = event.kind == EventKind::kAsyncBranch;
  if (!branches && event.kind != EventKind::kAsyncDisabled)
    return event.ip.is_null() ? "" : fmt::format(", ip: {:016x}", event.ip.value);
  std::string text = fmt::format(", {}: {:016x}", branches ? "from" : "at", event.ip.value);
  if (!event.to.is_null())
    text += fmt::format(", {}: {:016x}", branches ? "to" : "ip", event.to.value);
  return text;
}

}  // namespace

std::string EventText::control_flow(const Event& event) const {
  std::string text = control_flow_words(event);
  constexpr std::pair<EvdType, std::string_view> kNames[] = {
      {kEvdCr2, "cr2"}, {kEvdVmxr, "vmxr"}, {kEvdVmxq, "vmxq"}};
  for (auto [type, name] : kNames)
    for (const Event& data : data_)
      if (data.size_bytes == type) text += fmt::format(", {}: {:016x}", name, data.payload);
  for (const Event& data : data_)
    if (data.size_bytes > kEvdVmxr)
      text += fmt::format(", evd {}: {:016x}", data.size_bytes, data.payload);
  return text;
}

std::string EventText::words(const Event& event) const {
  switch (event.kind) {
    case EventKind::kEnabled:
      return event.has(kEventResumed) ? "resumed" : "enabled";
    case EventKind::kDisabled:
    case EventKind::kAsyncDisabled:
      return "disabled";
    case EventKind::kAsyncBranch:
      return "interrupt";
    case EventKind::kOverflow:
      return "overflow";
    case EventKind::kExecMode:
      return fmt::format("exec mode: {}", bits_of(event.mode));
    case EventKind::kTransaction:
      return transaction(event);
    case EventKind::kPaging:
    case EventKind::kAsyncPaging:
      return fmt::format("paging, cr3: {:016x}{}", event.payload,
                         event.has(kEventNonRoot) ? ", nr" : "");
    case EventKind::kVmcs:
    case EventKind::kAsyncVmcs:
      return fmt::format("vmcs, base: {:016x}", event.payload);
    case EventKind::kStop:
      return "stopped";
    case EventKind::kPtwrite:
      return fmt::format("ptwrite: {:x}", event.payload);
    case EventKind::kExstop:
      return "exstop";
    case EventKind::kMwait:
      return fmt::format("mwait {:x} {:x}", event.payload & 0xffffffff, event.payload >> 32);
    case EventKind::kPwre:
      return fmt::format("pwre c{}.{}{}", c_state(event.payload & 0xff),
                         c_state(event.payload >> 8), event.has(kEventHardware) ? " hw" : "");
    case EventKind::kPwrx:
      return power_exit(event);
    case EventKind::kCbr:
      return fmt::format("cbr: {:x}", event.payload);
    case EventKind::kMnt:
      return fmt::format("mnt: {:x}", event.payload);
    case EventKind::kControlFlow:
      return control_flow(event);
    case EventKind::kInterruptFlag:
      return event.payload != 0 ? "interrupts enabled" : "interrupts disabled";
    case EventKind::kBlock:
      return fmt::format("block {}, items of {} bytes", event.payload, event.size_bytes);
    case EventKind::kBlockItem:
      return fmt::format("block item {}: {:x}", event.size_bytes, event.payload);
    case EventKind::kTrigger:
      return trigger(event);
    case EventKind::kEndOfTrace:
      return "end of trace";
    case EventKind::kEventData:
      break;
  }
  return {};
}

std::string EventText::of(const Event& event) {
  if (std::exchange(is_taken_, false)) data_.clear();
  if (event.kind == EventKind::kEventData) {
    if (data_.size() < kMaxData) data_.push_back(event);
    return {};
  }
  std::string text = event.has(kEventStatusUpdate) ? "" : words(event);
  // What an overflow hides may be the CFE that they belong to.
  is_taken_ = event.kind == EventKind::kControlFlow || event.kind == EventKind::kOverflow;
  if (text.empty()) return text;
  if (with_addresses_) text += addresses(event);
  return "[" + text + "]";
}

std::string EventText::of(const Gap& gap) {
  data_.clear();
  return fmt::format("[{:x}, {:x}: error: {}]", gap.offset_bytes, gap.ip.value,
                     libipt_words(gap.error));
}

std::string_view EventText::name(EventKind kind) {
  switch (kind) {
    case EventKind::kEnabled:
      return "enabled";
    case EventKind::kDisabled:
      return "disabled";
    case EventKind::kAsyncDisabled:
      return "async-disabled";
    case EventKind::kAsyncBranch:
      return "async-branch";
    case EventKind::kOverflow:
      return "overflow";
    case EventKind::kExecMode:
      return "exec-mode";
    case EventKind::kTransaction:
      return "transaction";
    case EventKind::kPaging:
      return "paging";
    case EventKind::kAsyncPaging:
      return "async-paging";
    case EventKind::kVmcs:
      return "vmcs";
    case EventKind::kAsyncVmcs:
      return "async-vmcs";
    case EventKind::kStop:
      return "stop";
    case EventKind::kPtwrite:
      return "ptwrite";
    case EventKind::kExstop:
      return "exstop";
    case EventKind::kMwait:
      return "mwait";
    case EventKind::kPwre:
      return "pwre";
    case EventKind::kPwrx:
      return "pwrx";
    case EventKind::kCbr:
      return "cbr";
    case EventKind::kMnt:
      return "mnt";
    case EventKind::kControlFlow:
      return "control-flow";
    case EventKind::kEventData:
      return "event-data";
    case EventKind::kInterruptFlag:
      return "interrupt-flag";
    case EventKind::kBlock:
      return "block";
    case EventKind::kBlockItem:
      return "block-item";
    case EventKind::kTrigger:
      return "trigger";
    case EventKind::kEndOfTrace:
      return "end-of-trace";
  }
  return "unknown";
}

}  // namespace tailtrace::pt
