// Programs that never were: random code with every kind of branch, and random walks over it that
// note exactly which instructions were executed. Instructions are written and walked from one
// table, without any disassembler, so that what decodes them has an independent judge.
//
// Threading: pure; the same seed gives the same program and the same walk everywhere.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "decoder/code/instruction.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

struct ProgramInstruction {
  InstructionClass kind = InstructionClass::kOther;
  std::uint8_t size_bytes = 0;
  Address target;  // of direct branches
};

class RandomProgram {
 public:
  // Regions lie less than 64 KiB, less than 4 GiB and further apart.
  RandomProgram(std::uint64_t seed, unsigned blocks);

  const std::map<std::uint64_t, ProgramInstruction>& instructions() const { return code_; }
  const std::vector<Address>& blocks() const { return blocks_; }
  std::shared_ptr<const CodeImage> image() const { return image_; }

 private:
  struct Region;
  void write(Random& random, const Region& region);

  std::map<std::uint64_t, ProgramInstruction> code_;
  std::vector<Address> blocks_;
  std::shared_ptr<CodeImage> image_;
};

struct WalkOptions {
  std::uint64_t branches = 1000;
  bool asynchronous = true;  // signals, interrupts, discontinuities, markers
  bool edges = true;         // recording ends and begins
  bool losses = true;        // overflows and gaps
  bool transactions = false;
  bool odd_returns = true;  // returns that do not match their call
  bool times = false;
};

struct Walk {
  ThreadSnapshot snapshot;
  std::vector<Address> executed;  // without what was lost
};

Walk random_walk(const RandomProgram& program, std::uint64_t seed, const WalkOptions& options);

}  // namespace tailtrace
