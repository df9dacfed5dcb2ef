// StretchRecords: the words of a stretch of the fast path (flow_fast.h), as BranchRecords, in
// pieces of any length.
//
// A record has the time of the packet that told its branch; a direct jump or call has that of the
// packet before, and never an exact one. Times are read from the packets again, where there are
// timing packets at all: a path does not hold them.
//
// Threading: one thread at a time; trace, words and effects must outlive it.
#pragma once

#include <span>
#include <vector>

#include "decoder/pt/flow_fast.h"

namespace tailtrace::pt {

// What is known of a stretch beside its words.
struct Stretch {
  std::shared_ptr<const EffectBook> book;
  PathStart start;
  PathEnd end;
};

class StretchRecords {
 public:
  StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words, ByteSpan trace,
                 const DecoderConfig& config);

  bool done() const { return next_ == words_.size(); }

  // What one word makes, and what may be written behind the last record that counts.
  static constexpr std::size_t kSlack = 512;

  // Writes the records of the next words, as long as `to` has kSlack places left; how many.
  std::size_t take(std::span<BranchRecord> to);

  // Behind what was taken: where control stands, and what was executed since the last record.
  Address at() const {
    return done() ? stretch_.end.at : Address{Effect::at(place_of(next_)).start};
  }
  std::uint32_t open_insns() const { return open_.insns; }
  // They are told elsewhere.
  void forget_insns() { open_.insns = 0; }
  // Of the last packet that told anything.
  PacketTime time() const { return untold_ ? before_ : now_; }

 private:
  // The time of each packet that makes words of the stretch, in order.
  class PacketTimes {
   public:
    PacketTimes(ByteSpan trace, const PathStart& start, const DecoderConfig& config);
    // Behind the next TNT, TIP, TIP.PGD or TIP.PGE.
    void next();
    // Behind as many of them as follow with nothing between that could tell a time: how many.
    std::size_t skip_quiet();
    std::uint64_t time() const { return clock_.known() ? clock_.ticks() : 0; }
    bool exact() const { return exact_; }

   private:
    bool skip_common();
    bool step();

    PacketReader packets_;
    Clock clock_;
    bool at_branch_ = false, fresh_ = false, exact_ = false;
  };

  // What a packet's time makes of the second half of a record.
  class Stamp;
  // What the effects behind have to complete.
  struct Open {
    std::uint32_t insns;         // executed since the last record
    std::uint64_t* returned_to;  // of a return: where the next effect starts
  };

  const std::uint8_t* place_of(std::size_t i) const {
    return bytes_ + places_[words_[i] & kPathEffect];
  }
  template <bool kTimed>
  BranchRecord* expand_all(BranchRecord* to, const BranchRecord* full);
  template <bool kTimed>
  BranchRecord* expand_quiet(BranchRecord* to, const BranchRecord* full);
  BranchRecord* expand_told(const std::uint8_t* place, BranchRecord* to);
  static BranchRecord* expand(const std::uint8_t* place, const Stamp& stamp, BranchRecord* to,
                              Open& open);
  template <bool kTimed>
  void next_packet();
  bool is_quiet() const { return packet_count_ > 1 && !untold_ && !now_.exact; }

  const Stretch& stretch_;
  const std::span<const std::uint32_t> words_;
  const std::uint8_t* const bytes_;  // of the book
  const std::uint32_t* const places_;
  PacketTimes times_;
  std::size_t next_ = 0;
  PacketTime before_, now_;  // of the packet before, and of the one that makes words
  std::size_t packet_count_ = 0;
  std::size_t quiet_ = 0;  // packets that tell no other time than the one before
  bool untold_ = false;    // the packet has not told a branch yet
  std::uint64_t nowhere_ = 0;
  Open open_{0, &nowhere_};
};

}  // namespace tailtrace::pt
