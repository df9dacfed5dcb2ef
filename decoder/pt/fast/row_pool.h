// RowPool: rows that several flows fill in and use at once, each on a thread of its own: what one
// of them has learned the others know.
//
// Looking at rows takes no lock, as they are published whole. Filling one in takes the pool's lock
// for a moment. Whoever moves rows has to be alone with them: a flow is at work while it holds keys
// that nobody else knows of, and stops between blocks when somebody wants to be alone.
//
// Threading: any number of threads, each with a Member of its own.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "decoder/pt/fast/key_stack.h"
#include "decoder/pt/fast/row.h"

namespace tailtrace::pt {

// For a few hundred nanoseconds at most: whoever waits would take longer to fall asleep.
class BriefLock {
 public:
  void lock();
  void unlock() { is_taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag is_taken_;
};

class RowPool {
 public:
  // The rows are of the code of this epoch.
  explicit RowPool(Epoch epoch) : epoch_(epoch) {}
  Epoch epoch() const { return epoch_; }

  // A flow's part. REQUIRES: the member is of one pool at a time, and leaves it.
  struct Member {
    std::mutex at_work;  // held while keys are used that are not in `kept`
    // Used by whoever holds the mutex.
    KeyStack kept;    // renamed when keys change
    Rows::Part part;  // taken away when rows are dropped
  };
  // What one keeps goes over from one pool into another by what its keys name. REQUIRES: the caller
  // is the member's thread.
  void join(Member& member, std::span<const Rows::State> kept = {});
  std::vector<Rows::State> leave(Member& member);

  // REQUIRES: at work. What other members may change meanwhile needs the lock as well.
  Rows& rows() { return rows_; }
  BriefLock& lock() { return lock_; }

  // So many outcomes were looked for in vain where their rows should lie.
  void note_detours(std::size_t count);
  // Rows were put. REQUIRES: lock() is held.
  void note_crowd() {
    if (rows_.is_crowded()) is_crowded_.store(true, std::memory_order_relaxed);
  }
  bool is_full() {
    std::lock_guard hold(lock_);
    return rows_.is_full();
  }
  // 0 when rows are full, or have too little room.
  StateKey key_of(Member& member, std::uint64_t ip, CodeMode mode);

  // Whether make_room() ought to be called: rows have too little room, or somebody waits.
  bool wants_room() const {
    return is_crowded_.load(std::memory_order_relaxed) ||
           is_wanted_.load(std::memory_order_relaxed);
  }
  // Lets rows be moved, or moves them where they have too little room. REQUIRES: not at work.
  void make_room();
  // Begins anew when rows are full. REQUIRES: not at work.
  void drop_if_full();

 private:
  template <class Change>
  void change_alone(Change change);
  // By what its keys name; it keeps nothing then.
  std::vector<Rows::State> take_kept(Member& member) const;
  void drop();

  const Epoch epoch_;
  std::mutex moving_;             // before any member's
  std::vector<Member*> members_;  // by address, as their mutexes are taken; guarded by moving_
  std::atomic<bool> is_wanted_{false}, is_crowded_{false};
  BriefLock lock_;
  Rows rows_;
};

}  // namespace tailtrace::pt
