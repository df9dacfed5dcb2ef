// FlowRecorder: the half that recorders of single branches have in common: a BranchFlow that goes
// on from stop to stop, and the code it reads.
//
// Threading: one thread at a time.
#pragma once

#include "plugin/engines/perf/thread_recorder.h"

namespace tailtrace::perf {

class FlowRecorder : public ThreadRecorder {
 public:
  Result<void> refresh(const CodeInUse& code) final;
  Position end() const final { return {flow_ ? flow_->first() + flow_->records().size() : 0}; }
  void fill(const Engine::Stop& stop, ThreadSnapshot& snapshot) final;
  std::uint64_t buffer_bytes() const override {
    return event_.aux().empty() ? event_.ring().size() : event_.aux().size();
  }
  const std::optional<Error>& shortened() const override { return event_.shortened(); }

 protected:
  FlowRecorder(Event event, std::size_t keep, std::optional<Address> start)
      : event_(std::move(event)), keep_(keep), start_(start) {}

  // Adds to the flow what is new in the rings.
  virtual Result<void> take(bts::BranchFlow& flow) = 0;
  // Whether the newest branch is the last that was executed.
  virtual bool is_up_to_date() const { return true; }

  Event event_;

 private:
  void use(const CodeInUse& code);

  std::size_t keep_;
  std::optional<Address> start_;  // where recording began
  std::optional<Address> stop_;   // where the thread stood last
  std::shared_ptr<const CodeImage> image_;
  std::unique_ptr<CodeReader> reader_;
  std::optional<bts::BranchFlow> flow_;
  std::vector<std::pair<Position, Epoch>> epochs_;  // from that position on
};

}  // namespace tailtrace::perf
