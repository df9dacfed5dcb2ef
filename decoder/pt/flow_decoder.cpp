// The flow decoder behind the interface that both decoders implement.
#include <algorithm>

#include "decoder/pt/flow.h"

namespace tailtrace::pt {
namespace {

class FlowDecoder final : public Decoder {
 public:
  FlowDecoder(const CodeImage& code, const DecoderConfig& config) : code_(code), config_(config) {}

  std::string_view name() const override { return "flow"; }

  void decode(ByteSpan trace, Sink& sink) override {
    if (!find_psb(trace, 0)) {
      bool padding = std::all_of(trace.begin(), trace.end(), [](auto b) { return b == 0; });
      if (!padding) sink.gap({DecodeError::kNoSync, {}, 0, trace.size()});
      return;
    }
    FlowWalker(trace, code_, config_, sink).run(0, trace.size());
  }

 private:
  const CodeImage& code_;
  DecoderConfig config_;
};

}  // namespace

std::unique_ptr<Decoder> make_flow_decoder(const CodeImage& code, const DecoderConfig& config) {
  return std::make_unique<FlowDecoder>(code, config);
}

}  // namespace tailtrace::pt
