#include "tests/support/libipt_walk.h"

#include <fmt/format.h>
#include <intel-pt.h>

#include <memory>

namespace tailtrace {
namespace {

int read_code(std::uint8_t* buffer, std::size_t size, const pt_asid*, std::uint64_t ip,
              void* context) {
  const auto& image = *static_cast<const CodeImage*>(context);
  std::size_t count = image.read({ip}, {buffer, size}, image.newest());
  return count != 0 ? static_cast<int>(count) : -pte_nomap;
}

std::string text_of(const pt_event& event) {
  switch (event.type) {
    case ptev_enabled:
      return fmt::format("{} {:x}", event.variant.enabled.resumed ? "resumed" : "enabled",
                         event.variant.enabled.ip);
    case ptev_disabled:
      return "disabled";
    case ptev_async_disabled:
      return fmt::format("disabled at {:x}", event.variant.async_disabled.at);
    case ptev_async_branch:
      return fmt::format("interrupt {:x} -> {:x}", event.variant.async_branch.from,
                         event.variant.async_branch.to);
    case ptev_overflow:
      return fmt::format("overflow {:x}", event.ip_suppressed ? 0 : event.variant.overflow.ip);
    case ptev_tsx:
      return fmt::format("tsx {}{} at {:x}", event.variant.tsx.speculative ? "begin" : "end",
                         event.variant.tsx.aborted ? " aborted" : "", event.variant.tsx.ip);
    default:
      return fmt::format("event {}", static_cast<int>(event.type));
  }
}

using DecoderPtr = std::unique_ptr<pt_insn_decoder, decltype(&pt_insn_free_decoder)>;

int take_events(pt_insn_decoder* decoder, int status, LibiptWalk& walk) {
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_insn_event(decoder, &event, sizeof event);
    if (status < 0 || event.status_update) continue;
    walk.events.push_back(fmt::format("{}: {}", walk.instructions.size(), text_of(event)));
    walk.event_at.push_back(walk.instructions.size());
  }
  return status;
}

int walk_on(pt_insn_decoder* decoder, int status, std::size_t limit_insns, LibiptWalk& walk) {
  for (;;) {
    if (walk.instructions.size() > limit_insns) return -pte_eos;
    status = take_events(decoder, status, walk);
    if (status < 0 || (status & pts_eos) != 0) return status;
    pt_insn insn{};
    status = pt_insn_next(decoder, &insn, sizeof insn);
    if (insn.iclass != ptic_error) walk.instructions.push_back({insn.ip});
    if (status < 0) return status;
  }
}

}  // namespace

LibiptWalk walk_with_libipt(ByteSpan trace, const CodeImage& image, std::size_t limit_insns) {
  LibiptWalk walk;
  pt_config config;
  pt_config_init(&config);
  config.begin = const_cast<std::uint8_t*>(trace.data());
  config.end = config.begin + trace.size();
  DecoderPtr decoder(pt_insn_alloc_decoder(&config), &pt_insn_free_decoder);
  if (!decoder) {
    walk.errors.push_back("no decoder");
    return walk;
  }
  pt_image_set_callback(pt_insn_get_image(decoder.get()), read_code,
                        const_cast<CodeImage*>(&image));
  for (;;) {
    int status = pt_insn_sync_forward(decoder.get());
    if (status >= 0) status = walk_on(decoder.get(), status, limit_insns, walk);
    if (walk.instructions.size() > limit_insns) walk.errors.push_back("too many instructions");
    if (status >= 0 || status == -pte_eos) return walk;
    std::uint64_t offset = 0;
    pt_insn_get_offset(decoder.get(), &offset);
    walk.errors.push_back(fmt::format("{} at offset {:x} after {} instructions",
                                      pt_errstr(pt_errcode(status)), offset,
                                      walk.instructions.size()));
  }
}

}  // namespace tailtrace
