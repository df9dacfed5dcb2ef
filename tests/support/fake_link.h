// FakeLink: a server below whose words are the test's own. It has always something to read, if only
// that it is gone.
//
// Threading: one thread at a time.
#pragma once

#include <sys/eventfd.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "plugin/server/below/server_link.h"

namespace tailtrace {

class FakeLink : public ServerLink {
 public:
  // What it says to a request: payloads, a notification with a `%` before it.
  using Says = std::function<std::vector<std::string>(const std::string& request)>;
  explicit FakeLink(Says says) : says_(std::move(says)), ready_(::eventfd(1, EFD_CLOEXEC)) {}

  std::vector<std::string> heard;
  bool is_gone = false;  // once it has nothing more to say
  pid_t its_process = -1;
  StepRow* its_row = nullptr;

  Result<void> send(std::string_view payload) override {
    heard.emplace_back(payload);
    for (std::string& word : says_(heard.back())) words_.push_back(std::move(word));
    return {};
  }
  Result<void> send_frame(std::string_view frames) override {
    rsp::FrameParser parser;
    parser.feed(frames);
    while (auto frame = parser.next())
      if (auto sent = send(frame->payload); !sent) return sent;
    return {};
  }
  Result<void> interrupt() override { return send("\x03"); }
  void add_poll(std::vector<pollfd>& polled) const override {
    polled.push_back({ready_.get(), POLLIN, 0});
  }
  Result<void> receive() override { return {}; }
  Result<std::optional<rsp::Frame>> next() override {
    if (words_.empty() && is_gone) return fail(ErrorCode::kGone, "the server is gone");
    if (words_.empty()) return std::optional<rsp::Frame>();
    current_ = std::move(words_.front());
    words_.pop_front();
    if (current_.starts_with('%'))
      return std::optional(
          rsp::Frame{rsp::Frame::Kind::kNotification, std::string_view(current_).substr(1)});
    return std::optional(rsp::Frame{rsp::Frame::Kind::kPacket, current_});
  }
  int shut_down(bool) override { return 0; }
  int exit_status() override { return 0; }
  pid_t process() const override { return its_process; }
  StepRow* step_row() override { return its_row; }

 private:
  Says says_;
  UniqueFd ready_;
  std::deque<std::string> words_;
  std::string current_;
};

}  // namespace tailtrace
