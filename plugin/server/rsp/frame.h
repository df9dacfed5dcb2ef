// Frames of the gdb-remote protocol: `$payload#cc`, `%payload#cc`, `+`, `-` and the break byte.
//
// A payload here is what stands between `$` and `#`, as it came: runs are not expanded and escapes
// are kept, so that it can be passed on without change. The functions below undo both.
//
// Threading: values, no shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {

// The answer that something did not work. Debuggers make nothing of the number.
constexpr std::string_view kFailed = "E01";

struct Frame {
  enum class Kind {
    kPacket,
    kNotification,
    kAck,
    kNack,
    kInterrupt,  // byte 3
    kCorrupt,    // a packet whose checksum is wrong
    kOversize,   // more than the limit without an end; the stream cannot be trusted any more
  };
  Kind kind;
  std::string_view payload;  // valid until the next call of feed() or space()
};

// Cuts a stream of bytes into frames. Bytes between frames are dropped.
class FrameParser {
 public:
  // A payload may be this long: well above what any stub or debugger announces as PacketSize.
  static constexpr std::size_t kMaxPayload_bytes = 1 << 22;

  void feed(std::string_view bytes);

  // The next whole frame; nothing when more bytes are needed.
  std::optional<Frame> next();

 private:
  std::optional<Frame> next_payload(Frame::Kind kind);

  std::string buffer_;
  std::size_t begin_ = 0;    // of what was not handed out
  std::size_t scanned_ = 0;  // no '#' between begin_ and here
  bool broken_ = false;
};

// Appends `$payload#cc` (or `%payload#cc`). REQUIRES: a payload whose `$`, `#` are escaped.
void append_frame(std::string& out, std::string_view payload, char start = '$');

// Undoes run-length encoding (`0*"`). False when it is malformed or grows beyond
// kMaxPayload_bytes; `out` is replaced.
bool expand_runs(std::string_view payload, std::string& out);

// Undoes `}` escapes of binary data; a trailing lone `}` is dropped.
std::string unescape(std::string_view payload);

// Escapes what may not stand in a payload as it is: `#`, `$`, `}`, `*`.
std::string escape(std::string_view bytes);

}  // namespace tailtrace::rsp
