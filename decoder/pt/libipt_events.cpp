#include "decoder/pt/libipt_events.h"

namespace tailtrace::pt {
namespace {

void set_flag(Event& event, EventFlags flag, bool set) {
  if (set) event.flags |= flag;
}

// `ip` counts only when the event says that it was not suppressed.
void set_ip(Event& event, const pt_event& from, std::uint64_t ip) {
  set_flag(event, kEventIpSuppressed, from.ip_suppressed);
  if (!from.ip_suppressed) event.ip = {ip};
}

// The events that change where control flows; false for all others.
bool convert_flow(Event& event, const pt_event& from) {
  const auto& v = from.variant;
  switch (from.type) {
    case ptev_enabled:
      event.kind = EventKind::kEnabled;
      set_ip(event, from, v.enabled.ip);
      set_flag(event, kEventResumed, v.enabled.resumed);
      return true;
    case ptev_disabled:
      event.kind = EventKind::kDisabled;
      set_ip(event, from, v.disabled.ip);
      return true;
    case ptev_async_disabled:
      event.kind = EventKind::kAsyncDisabled;
      set_ip(event, from, v.async_disabled.ip);
      event.to = event.ip;
      event.ip = {v.async_disabled.at};
      return true;
    case ptev_async_branch:
      event.kind = EventKind::kAsyncBranch;
      set_ip(event, from, v.async_branch.to);
      event.to = event.ip;
      event.ip = {v.async_branch.from};
      return true;
    case ptev_overflow:
      event.kind = EventKind::kOverflow;
      set_ip(event, from, v.overflow.ip);
      return true;
    case ptev_tsx:
      event.kind = EventKind::kTransaction;
      set_ip(event, from, v.tsx.ip);
      set_flag(event, kEventSpeculative, v.tsx.speculative);
      set_flag(event, kEventAborted, v.tsx.aborted);
      return true;
    case ptev_stop:
      event.kind = EventKind::kStop;
      return true;
    default:
      return false;
  }
}

// What the processor is set to.
bool convert_state(Event& event, const pt_event& from) {
  const auto& v = from.variant;
  switch (from.type) {
    case ptev_exec_mode:
      event.kind = EventKind::kExecMode;
      set_ip(event, from, v.exec_mode.ip);
      event.mode = mode_from_libipt(v.exec_mode.mode);
      return true;
    case ptev_paging:
      event.kind = EventKind::kPaging;
      event.payload = v.paging.cr3;
      set_flag(event, kEventNonRoot, v.paging.non_root);
      return true;
    case ptev_async_paging:
      event.kind = EventKind::kAsyncPaging;
      set_ip(event, from, v.async_paging.ip);
      event.payload = v.async_paging.cr3;
      set_flag(event, kEventNonRoot, v.async_paging.non_root);
      return true;
    case ptev_vmcs:
      event.kind = EventKind::kVmcs;
      event.payload = v.vmcs.base;
      return true;
    case ptev_async_vmcs:
      event.kind = EventKind::kAsyncVmcs;
      set_ip(event, from, v.async_vmcs.ip);
      event.payload = v.async_vmcs.base;
      return true;
    case ptev_cbr:
      event.kind = EventKind::kCbr;
      event.payload = v.cbr.ratio;
      return true;
    default:
      return false;
  }
}

// Power, and what software writes into the trace.
bool convert_payload(Event& event, const pt_event& from) {
  const auto& v = from.variant;
  switch (from.type) {
    case ptev_ptwrite:
      event.kind = EventKind::kPtwrite;
      set_ip(event, from, v.ptwrite.ip);
      event.payload = v.ptwrite.payload;
      event.size_bytes = v.ptwrite.size;
      return true;
    case ptev_exstop:
      event.kind = EventKind::kExstop;
      set_ip(event, from, v.exstop.ip);
      return true;
    case ptev_mwait:
      event.kind = EventKind::kMwait;
      set_ip(event, from, v.mwait.ip);
      event.payload = v.mwait.hints | (static_cast<std::uint64_t>(v.mwait.ext) << 32);
      return true;
    case ptev_pwre:
      event.kind = EventKind::kPwre;
      event.payload = v.pwre.state | (static_cast<std::uint64_t>(v.pwre.sub_state) << 8);
      set_flag(event, kEventHardware, v.pwre.hw);
      return true;
    case ptev_pwrx:
      event.kind = EventKind::kPwrx;
      event.payload = v.pwrx.last | (static_cast<std::uint64_t>(v.pwrx.deepest) << 8);
      set_flag(event, kEventInterrupt, v.pwrx.interrupt);
      set_flag(event, kEventStore, v.pwrx.store);
      set_flag(event, kEventAutonomous, v.pwrx.autonomous);
      return true;
    case ptev_mnt:
      event.kind = EventKind::kMnt;
      event.payload = v.mnt.payload;
      return true;
    default:
      return false;
  }
}

std::uint32_t filter_kind(const AddressFilter& filter) {
  return static_cast<std::uint32_t>(filter.kind);
}

pt_conf_addr_filter filters_for_libipt(const std::array<AddressFilter, 4>& filters) {
  pt_conf_addr_filter out{};
  out.config.ctl.addr0_cfg = filter_kind(filters[0]) & 0xf;
  out.config.ctl.addr1_cfg = filter_kind(filters[1]) & 0xf;
  out.config.ctl.addr2_cfg = filter_kind(filters[2]) & 0xf;
  out.config.ctl.addr3_cfg = filter_kind(filters[3]) & 0xf;
  out.addr0_a = filters[0].first.value;
  out.addr0_b = filters[0].last.value;
  out.addr1_a = filters[1].first.value;
  out.addr1_b = filters[1].last.value;
  out.addr2_a = filters[2].first.value;
  out.addr2_b = filters[2].last.value;
  out.addr3_a = filters[3].first.value;
  out.addr3_b = filters[3].last.value;
  return out;
}

pt_errata errata_for_libipt(const Errata& errata) {
  pt_errata out{};
  out.bdm70 = errata.bdm70;
  out.bdm64 = errata.bdm64;
  out.skd007 = errata.skd007;
  out.skd022 = errata.skd022;
  out.skd010 = errata.skd010;
  out.skl014 = errata.skl014;
  out.apl12 = errata.apl12;
  out.apl11 = errata.apl11;
  out.skl168 = errata.skl168;
  out.skz84 = errata.skz84;
  return out;
}

}  // namespace

CodeMode mode_from_libipt(pt_exec_mode mode) {
  switch (mode) {
    case ptem_16bit:
      return CodeMode::k16;
    case ptem_32bit:
      return CodeMode::k32;
    default:
      return CodeMode::k64;
  }
}

std::optional<Event> event_from_libipt(const pt_event& from) {
  Event event;
  set_flag(event, kEventStatusUpdate, from.status_update);
  if (from.has_tsc) {
    event.flags |= kEventHasTime;
    event.time = from.tsc;
  }
  if (convert_flow(event, from) || convert_state(event, from) || convert_payload(event, from))
    return event;
  return std::nullopt;
}

DecodeError error_from_libipt(int status) {
  switch (pt_errcode(status)) {
    case pte_nosync:
      return DecodeError::kNoSync;
    case pte_bad_opc:
      return DecodeError::kBadOpcode;
    case pte_bad_packet:
      return DecodeError::kBadPacket;
    case pte_eos:
      return DecodeError::kCutPacket;
    case pte_bad_query:
      return DecodeError::kBadQuery;
    case pte_nomap:
      return DecodeError::kNoCode;
    case pte_bad_insn:
      return DecodeError::kBadInstruction;
    case pte_noip:
    case pte_ip_suppressed:
      return DecodeError::kNoIp;
    case pte_no_enable:
      return DecodeError::kNoEnable;
    case pte_bad_retcomp:
      return DecodeError::kBadReturn;
    case pte_retstack_empty:
      return DecodeError::kReturnStackEmpty;
    case pte_bad_status_update:
      return DecodeError::kBadStatusUpdate;
    case pte_event_ignored:
      return DecodeError::kEventIgnored;
    case pte_nomem:
    case pte_overflow:
      return DecodeError::kTooMuch;
    default:
      return DecodeError::kBadContext;
  }
}

std::string_view libipt_words(DecodeError error) {
  switch (error) {
    case DecodeError::kNoSync:
      return pt_errstr(pte_nosync);
    case DecodeError::kBadOpcode:
      return pt_errstr(pte_bad_opc);
    case DecodeError::kBadPacket:
      return pt_errstr(pte_bad_packet);
    case DecodeError::kCutPacket:
      return pt_errstr(pte_eos);
    case DecodeError::kBadContext:
      return pt_errstr(pte_bad_context);
    case DecodeError::kBadQuery:
      return pt_errstr(pte_bad_query);
    case DecodeError::kNoCode:
      return pt_errstr(pte_nomap);
    case DecodeError::kBadInstruction:
      return pt_errstr(pte_bad_insn);
    case DecodeError::kNoIp:
      return pt_errstr(pte_ip_suppressed);
    case DecodeError::kNoEnable:
      return pt_errstr(pte_no_enable);
    case DecodeError::kBadReturn:
      return pt_errstr(pte_bad_retcomp);
    case DecodeError::kReturnStackEmpty:
      return pt_errstr(pte_retstack_empty);
    case DecodeError::kBadStatusUpdate:
      return pt_errstr(pte_bad_status_update);
    case DecodeError::kEventIgnored:
      return pt_errstr(pte_event_ignored);
    case DecodeError::kNarrowCode:
    case DecodeError::kEndlessLoop:
    case DecodeError::kTooMuch:
      break;
  }
  return error_text(error);
}

pt_config libipt_config(ByteSpan trace, const DecoderConfig& config) {
  pt_config out;
  pt_config_init(&out);
  // libipt only reads the buffer.
  out.begin = const_cast<std::uint8_t*>(trace.data());
  out.end = out.begin + trace.size();
  if (config.cpu.family != 0) out.cpu.vendor = pcv_intel;
  out.cpu.family = config.cpu.family;
  out.cpu.model = config.cpu.model;
  out.cpu.stepping = config.cpu.stepping;
  out.errata = errata_for_libipt(config.errata);
  out.cpuid_0x15_eax = config.timing.cpuid_15_eax;
  out.cpuid_0x15_ebx = config.timing.cpuid_15_ebx;
  out.mtc_freq = config.timing.mtc_period;
  out.nom_freq = config.timing.nominal_ratio;
  out.addr_filter = filters_for_libipt(config.filters);
  return out;
}

}  // namespace tailtrace::pt
