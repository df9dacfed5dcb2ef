#include "plugin/server/rsp/connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tailtrace::rsp {
namespace {

void make_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::Connection(UniqueFd stream) : in_(std::move(stream)) { make_non_blocking(in_.get()); }

Connection::Connection(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {
  make_non_blocking(in_.get());
  make_non_blocking(out_.get());
}

Result<void> Connection::send(std::string_view payload) {
  std::string frame;
  append_frame(frame, payload);
  auto sent = send_raw(frame);
  if (acks_) {
    last_packet_ = std::move(frame);
    repeats_ = 0;
  }
  return sent;
}

Result<void> Connection::notify(std::string_view payload) {
  std::string frame;
  append_frame(frame, payload, '%');
  return send_raw(frame);
}

Result<void> Connection::send_raw(std::string_view bytes) {
  if (!wants_to_write()) {
    pending_.clear();
    sent_ = 0;
    ssize_t n = ::write(out(), bytes.data(), bytes.size());
    if (n == static_cast<ssize_t>(bytes.size())) return {};
    if (n < 0 && !would_block(errno)) return fail(system_error("cannot send to the peer"));
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (pending_.size() - sent_ + bytes.size() > kMaxPending_bytes)
    return fail(ErrorCode::kGone, "cannot send to the peer", "it does not read");
  pending_.append(bytes);
  return {};
}

Result<void> Connection::flush() {
  while (wants_to_write()) {
    ssize_t n = ::write(out(), pending_.data() + sent_, pending_.size() - sent_);
    if (n < 0 && would_block(errno)) return {};
    if (n < 0) return fail(system_error("cannot send to the peer"));
    sent_ += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> Connection::receive() {
  char bytes[1 << 14];
  ssize_t n = ::read(in(), bytes, sizeof bytes);
  if (n < 0 && would_block(errno)) return {};
  // A terminal whose other end is closed says EIO instead of an end.
  if (n == 0 || (n < 0 && errno == EIO))
    return fail(ErrorCode::kGone, "the peer has closed the connection");
  if (n < 0) return fail(system_error("cannot receive from the peer"));
  parser_.feed({bytes, static_cast<std::size_t>(n)});
  return {};
}

Result<void> Connection::repeat_last() {
  if (!acks_ || last_packet_.empty()) return {};
  if (++repeats_ > kMaxRepeats)
    return fail(ErrorCode::kBadInput, "the peer refuses every copy of a packet");
  return send_raw(last_packet_);
}

Result<std::optional<Frame>> Connection::next() {
  while (auto frame = parser_.next()) {
    switch (frame->kind) {
      case Frame::Kind::kPacket:
        if (acks_) (void)send_raw("+");
        return frame;
      case Frame::Kind::kNotification:
      case Frame::Kind::kInterrupt:
        return frame;
      case Frame::Kind::kAck:
        last_packet_.clear();
        break;
      case Frame::Kind::kNack:
        if (auto ok = repeat_last(); !ok) return fail(std::move(ok.error()));
        break;
      case Frame::Kind::kCorrupt:
        if (acks_) (void)send_raw("-");
        break;
      case Frame::Kind::kOversize:
        return fail(ErrorCode::kBadInput, "cannot understand the peer",
                    "it sent more than 4 MiB without ending the packet");
    }
  }
  return std::optional<Frame>();
}

}  // namespace tailtrace::rsp
