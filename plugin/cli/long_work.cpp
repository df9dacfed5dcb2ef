#include "plugin/cli/long_work.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tailtrace {
namespace {

constexpr std::chrono::milliseconds kPatience(300);
constexpr std::chrono::milliseconds kSayPeriod(50);

volatile sig_atomic_t g_interrupted = 0;
std::FILE* g_said_on = nullptr;  // where a line of progress stands

std::string count_text(std::uint64_t count) {
  if (count < 1'000'000) return std::to_string(count);
  return fmt::format("{:.1f} M", static_cast<double>(count) * 1e-6);
}

}  // namespace

LongWork::LongWork(std::FILE* err)
    : err_(err),
      terminal_(::isatty(::fileno(err)) == 1),
      next_(std::chrono::steady_clock::now() + kPatience) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  // The second Ctrl-C is an ordinary one.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, &before_);
}

LongWork::~LongWork() {
  ::sigaction(SIGINT, &before_, nullptr);
  g_interrupted = 0;
  wipe_progress();
}

bool LongWork::interrupted() { return g_interrupted != 0; }

void LongWork::say(const std::function<std::string()>& progress) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kSayPeriod;
  fmt::print(err_, "\r\33[K{}", progress());
  std::fflush(err_);
  g_said_on = err_;
}

Printing::~Printing() {
  if (!interrupted_) return;
  std::fflush(out_);
  std::fputs(kPrintingInterrupted, stderr);
  std::fputc('\n', stderr);
}

bool Printing::goes_on() {
  if (!work_) work_.emplace(stderr);
  interrupted_ = interrupted_ || LongWork::interrupted();
  return !interrupted_ && std::ferror(out_) == 0;
}

void wipe_progress() {
  if (std::FILE* err = std::exchange(g_said_on, nullptr)) fmt::print(err, "\r\33[K");
}

SegmentStore::Watch Counting::watch() {
  return [this](const SegmentStore::Progress& progress) {
    work_.say([&] { return progress_text(progress); });
    interrupted_ = LongWork::interrupted();
    return !interrupted_;
  };
}

void Answering::watch(HistorySettings& settings) {
  settings.stop = stop_.get_token();
  settings.walked = [this](const History& history, std::uint64_t number) { look(history, number); };
}

void Answering::look(const History& history, std::uint64_t number) {
  if (stop_.stop_requested() || !work_) return;
  work_->say([&] { return progress_text(history, number); });
  if (!LongWork::interrupted()) return;
  at_ = history.from_newest(number);
  size_ = history.size();
  stop_.request_stop();
  g_interrupted = 0;  // what was found by then is printed: another one is of that
}

std::string Answering::interruption_text() const {
  if (!stop_.stop_requested()) return kPrintingInterrupted;
  return fmt::format("interrupted at item {} of {}: the answer is of a part of the history", at_,
                     size_);
}

std::string progress_text(const SegmentStore::Progress& progress) {
  const std::uint64_t percent = progress.size == 0 ? 100 : progress.done * 100 / progress.size;
  const std::uint64_t insns = progress.found.items - progress.found.gaps;
  return fmt::format("indexed {} % (newest {} instructions ready)", percent, count_text(insns));
}

std::string progress_text(const History& history, std::uint64_t number) {
  return fmt::format("answering: at item -{} of {}", count_text(history.newest() - number + 1),
                     count_text(history.size()));
}

}  // namespace tailtrace
