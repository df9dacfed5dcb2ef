#include "plugin/server/rsp/frame.h"

#include <numeric>

namespace tailtrace::rsp {
namespace {

constexpr char kInterruptByte = '\x03';
// A run's count is a printable character: 29 more than the repetitions (GDB manual, "Overview").
constexpr int kRunBias = 29;
constexpr char kEscapeMask = 0x20;

std::uint8_t checksum(std::string_view payload) {
  unsigned sum = 0;
  for (char c : payload) sum += static_cast<std::uint8_t>(c);
  return static_cast<std::uint8_t>(sum);
}

}  // namespace

void FrameParser::feed(std::string_view bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = scanned_ = 0;
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    scanned_ -= std::min(begin_, scanned_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

std::optional<Frame> FrameParser::next() {
  if (broken_) return std::nullopt;
  while (begin_ < buffer_.size()) {
    switch (buffer_[begin_]) {
      case '$':
        return next_payload(Frame::Kind::kPacket);
      case '%':
        return next_payload(Frame::Kind::kNotification);
      case '+':
        ++begin_;
        return Frame{Frame::Kind::kAck, {}};
      case '-':
        ++begin_;
        return Frame{Frame::Kind::kNack, {}};
      case kInterruptByte:
        ++begin_;
        return Frame{Frame::Kind::kInterrupt, {}};
      default:
        ++begin_;
    }
  }
  return std::nullopt;
}

std::optional<Frame> FrameParser::next_payload(Frame::Kind kind) {
  std::size_t payload_begin = begin_ + 1;
  std::size_t hash = buffer_.find('#', std::max(payload_begin, scanned_));
  if (hash == std::string::npos || hash + 2 >= buffer_.size()) {
    scanned_ = hash == std::string::npos ? buffer_.size() : hash;
    if (scanned_ - payload_begin <= kMaxPayload_bytes) return std::nullopt;
    broken_ = true;
    return Frame{Frame::Kind::kOversize, {}};
  }
  std::string_view payload = std::string_view(buffer_).substr(payload_begin, hash - payload_begin);
  auto sum = parse_hex(std::string_view(buffer_).substr(hash + 1, 2));
  begin_ = scanned_ = hash + 3;
  if (sum != checksum(payload)) return Frame{Frame::Kind::kCorrupt, payload};
  return Frame{kind, payload};
}

void append_frame(std::string& out, std::string_view payload, char start) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::uint8_t sum = checksum(payload);
  out += start;
  out += payload;
  out += '#';
  out += kDigits[sum >> 4];
  out += kDigits[sum & 15];
}

bool expand_runs(std::string_view payload, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] != '*') {
      out += payload[i];
      continue;
    }
    if (out.empty() || ++i == payload.size()) return false;
    int repeat = static_cast<std::uint8_t>(payload[i]) - kRunBias;
    if (repeat <= 0 ||
        out.size() + static_cast<std::size_t>(repeat) > FrameParser::kMaxPayload_bytes)
      return false;
    out.append(static_cast<std::size_t>(repeat), out.back());
  }
  return true;
}

std::string unescape(std::string_view payload) {
  std::string out;
  out.reserve(payload.size());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] != '}') {
      out += payload[i];
    } else if (++i < payload.size()) {
      out += static_cast<char>(payload[i] ^ kEscapeMask);
    }
  }
  return out;
}

std::string escape(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (char c : bytes) {
    if (c == '#' || c == '$' || c == '}' || c == '*') {
      out += '}';
      out += static_cast<char>(c ^ kEscapeMask);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tailtrace::rsp
