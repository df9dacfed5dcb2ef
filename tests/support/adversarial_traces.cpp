#include "tests/support/adversarial_traces.h"

#include <fstream>
#include <random>

#include "decoder/pt/packets/packet_writer.h"

namespace tailtrace::pt {
namespace {

constexpr std::uint64_t kBase = 0x10000000;
constexpr std::uint64_t kBlock_bytes = 8;

// Blocks of one branch each, of the same size, one behind the other.
class Maze {
 public:
  Maze(std::string name, std::uint64_t blocks, std::uint64_t psb_period_bytes)
      : name_(std::move(name)), blocks_(blocks), psb_period_bytes_(psb_period_bytes) {}

  // Each block is a jump to wherever the trace says.
  void walk_indirect(std::uint64_t branches) {
    for (std::uint64_t i = 0; i < blocks_; ++i)
      put({0xff, 0xe0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
    begin();
    for (std::uint64_t i = 0; i < branches; ++i) {
      at_ = random_() % blocks_;
      out_.tip(address(at_));
      synchronise();
    }
    end();
  }

  // Each is a conditional jump to any other, taken or not without a pattern.
  void walk_conditional(std::uint64_t branches) {
    std::vector<std::uint64_t> targets;
    for (std::uint64_t i = 0; i < blocks_; ++i) {
      targets.push_back(random_() % blocks_);
      auto distance = static_cast<std::uint32_t>((targets[i] - i) * kBlock_bytes - 6);
      put({0x0f, 0x84});
      for (unsigned bit = 0; bit < 32; bit += 8)
        code_.push_back(static_cast<std::uint8_t>(distance >> bit));
      put({0x90, 0x90});
    }
    begin();
    for (std::uint64_t i = 0; i < branches; ++i) {
      bool taken = random_() % 2 == 0 || at_ + 1 == blocks_;
      out_.tnt(taken);
      // Not taken, two NOPs lead to the next block.
      at_ = taken ? targets[at_] : at_ + 1;
      if (!out_.tnt_pending()) synchronise();
    }
    end();
  }

  Result<PtInput> take(const std::string& folder) {
    PtInput input;
    input.name = name_;
    input.trace = out_.take();
    input.files = {{folder + "/" + name_, 0, code_.size(), kBase}};
    std::ofstream file(input.files[0].path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(code_.data()),
               static_cast<std::streamsize>(code_.size()));
    if (!file.flush()) return fail(ErrorCode::kSystem, "cannot write " + input.files[0].path);
    auto code = std::make_shared<CodeImage>();
    if (auto added = code->add({kBase}, code_); !added) return fail(added.error());
    input.code = std::move(code);
    return input;
  }

 private:
  static Address address(std::uint64_t block) { return {kBase + block * kBlock_bytes}; }
  void put(std::initializer_list<std::uint8_t> bytes) {
    code_.insert(code_.end(), bytes.begin(), bytes.end());
  }
  void begin() {
    at_ = 0;
    put_psb();
  }
  void put_psb() {
    last_psb_ = out_.size_bytes();
    out_.psb();
    out_.tsc(clock_ += 1000);
    out_.mode_exec(CodeMode::k64);
    out_.fup(address(at_));
    out_.psbend();
  }
  void synchronise() {
    if (out_.size_bytes() - last_psb_ >= psb_period_bytes_) put_psb();
  }
  void end() {
    out_.flush();
    out_.fup(address(at_));
    out_.tip_pgd_suppressed();
  }

  std::string name_;
  std::uint64_t blocks_, psb_period_bytes_;
  std::mt19937_64 random_{1};
  Bytes code_;
  PacketWriter out_;
  std::uint64_t at_ = 0, clock_ = 0, last_psb_ = 0;
};

}  // namespace

Result<std::vector<PtInput>> adversarial_traces(const std::string& folder, std::uint64_t branches) {
  constexpr std::uint64_t kMany = 1u << 18, kFew = 64, kPsbPeriod_bytes = 16384;
  std::vector<Maze> mazes;
  mazes.emplace_back("targets", kMany, kPsbPeriod_bytes).walk_indirect(branches);
  mazes.emplace_back("outcomes", kMany, kPsbPeriod_bytes).walk_conditional(branches);
  mazes.emplace_back("often-psb", kFew, 2048).walk_conditional(branches);
  std::vector<PtInput> inputs;
  for (Maze& maze : mazes) {
    Result<PtInput> input = maze.take(folder);
    if (!input) return fail(std::move(input.error()));
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

}  // namespace tailtrace::pt
