// StretchRecords: the words of a stretch of the fast path (fast_flow.h), as BranchRecords, in
// pieces of any length.
//
// A record has the time of the packet that told its branch; a direct jump or call has that of the
// packet before, and never an exact one.
//
// Threading: one thread at a time; words, marks and effects must outlive it.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "decoder/pt/fast/fast_flow.h"

namespace tailtrace::pt {

// What is known of a stretch beside its words.
struct Stretch {
  std::shared_ptr<const EffectBook> book;
  PathStart start;
  PathEnd end;
};

class StretchRecords {
 public:
  StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words,
                 std::span<const TimeMark> marks);

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
  BranchRecord* expand_all(BranchRecord* to, const BranchRecord* full);
  // What is read in vain, behind an effect, another thread may just write: no sanitizer looks at
  // these, nor at what is inlined into them. (Said where a template is defined, GCC 12 does not
  // heed it.)
  template <std::uint32_t kCount>
  [[gnu::no_sanitize_thread]] BranchRecord* expand_quiet(BranchRecord* to,
                                                         const BranchRecord* full);
  [[gnu::no_sanitize_thread]] BranchRecord* expand_told(const std::uint8_t* place,
                                                        BranchRecord* to);
  void date_back(const std::uint8_t* place, BranchRecord* records) const;
  template <std::uint32_t kCount>
  [[gnu::always_inline]] static inline BranchRecord* expand(const std::uint8_t* place,
                                                            const Stamp& stamp, BranchRecord* to,
                                                            Open& open);
  void next_packet();
  // Where the next time is told, at or behind next_.
  std::size_t next_mark() const {
    return marks_.empty() ? words_.size() : std::min<std::size_t>(marks_[0].word, words_.size());
  }
  bool is_quiet() const { return begun_ && !untold_ && !now_.exact; }
  // Whether it is behind the word that has the next time, which is that word's alone.
  bool stays_quiet(std::size_t next) const {
    return next < words_.size() && (words_[next] & kPathFirst) != 0 && marks_[0].exact == 0 &&
           (marks_.size() == 1 || marks_[1].word != next) &&
           Effect::at(place_of(next)).decides != 0;
  }

  const Stretch& stretch_;
  const std::span<const std::uint32_t> words_;
  const std::uint8_t* const bytes_;  // of the book
  const std::uint32_t* const places_;
  std::span<const TimeMark> marks_;  // of words from next_ on
  const bool makes_few_;             // most words make one record or none
  std::size_t next_ = 0;
  PacketTime before_, now_;  // of the packet before, and of the one that makes words
  bool begun_ = false;       // the first packet was met
  bool untold_ = false;      // the packet has not told a branch yet
  std::uint64_t nowhere_ = 0;
  Open open_{0, &nowhere_};
};

}  // namespace tailtrace::pt
