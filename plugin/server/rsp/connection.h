// One end of a gdb-remote connection over a stream of bytes: frames in, frames out, and the
// acknowledgements between them, which each side of a proxy keeps for itself.
//
// Nothing blocks: bytes that the peer does not take yet wait in a buffer.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "plugin/server/rsp/frame.h"

namespace tailtrace::rsp {

class Connection {
 public:
  // Takes a stream of both directions and makes it non-blocking.
  explicit Connection(UniqueFd stream);
  // For a stream of two descriptors, as stdin and stdout are.
  Connection(UniqueFd in, UniqueFd out);

  int in() const { return in_.get(); }
  int out() const { return out_ ? out_.get() : in_.get(); }
  bool wants_to_write() const { return sent_ < pending_.size(); }

  // Sends what can be sent now. Errors: kGone, kSystem.
  Result<void> send(std::string_view payload);
  Result<void> notify(std::string_view payload);
  // A frame made by append_frame, or a break byte, as it is.
  Result<void> send_raw(std::string_view bytes);
  // Call when the stream takes bytes again. Errors: as send.
  Result<void> flush();

  // Reads what is there. Errors: kGone at the end of the stream, kSystem.
  Result<void> receive();
  // The next packet, notification or break; acknowledgements are dealt with inside. The payload is
  // valid until receive(). Errors: kBadInput when the stream cannot be understood any more.
  Result<std::optional<Frame>> next();

  // The peer has all that was sent to it, by its own word; true where nothing is acknowledged.
  bool is_acknowledged() const { return last_packet_.empty(); }
  // From now on packets of either direction are not acknowledged.
  void stop_acks() { acks_ = false; }

 private:
  // What a peer that does not read may make us keep.
  static constexpr std::size_t kMaxPending_bytes = 1 << 26;
  static constexpr int kMaxRepeats = 10;

  Result<void> repeat_last();

  UniqueFd in_, out_;
  FrameParser parser_;
  std::string pending_;
  std::size_t sent_ = 0;
  bool acks_ = true;
  std::string last_packet_;  // to be repeated on a nack
  int repeats_ = 0;
};

}  // namespace tailtrace::rsp
