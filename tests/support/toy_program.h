// A toy program: a little machine code put together at random, and a machine that runs it.
//
// The machine knows where its own instructions begin and what they do, so what it executed is truth
// that no decoder of ours had a hand in; the records are written down as the definition of
// BranchRecord has it.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "decoder/history/snapshot.h"

namespace tailtrace {

struct ToyRun {
  std::vector<Address> executed;  // in order
  std::shared_ptr<ThreadSnapshot> snapshot;
};

class ToyProgram {
 public:
  // `functions` functions of `blocks` blocks each.
  ToyProgram(std::uint64_t seed, std::size_t functions, std::size_t blocks);

  // Runs until `steps` instructions were executed; interrupts it now and then when `async` says so.
  ToyRun run(std::uint64_t seed, std::uint64_t steps, bool async = false) const;

  std::shared_ptr<const CodeImage> image() const { return image_; }
  static constexpr Address kBase{0x400000};

 private:
  struct Op {
    Address address;
    std::uint8_t size = 0;
    RecordKind kind = RecordKind::kNone;  // kNone: falls through
    std::size_t target = 0;               // of direct branches: an index into ops_
  };

  void emit(const Bytes& bytes, RecordKind kind = RecordKind::kNone, std::size_t target = 0);
  void emit_end(std::mt19937_64& random, std::size_t function, std::size_t block);
  void link();

  std::size_t blocks_;
  Bytes code_;
  std::vector<Op> ops_;
  std::vector<std::size_t> block_starts_;     // ops_ index of each block
  std::vector<std::size_t> function_starts_;  // ops_ index of each function
  std::shared_ptr<const CodeImage> image_;
};

}  // namespace tailtrace
