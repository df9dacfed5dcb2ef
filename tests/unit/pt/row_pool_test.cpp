// Rows that several flows share: what each keeps names the same places, whoever moves or drops rows
// meanwhile.
#include "decoder/pt/fast/row_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace tailtrace::pt {
namespace {

constexpr std::uint64_t kBase = 0x1000;

// A thread that does with rows what a flow does: fills them in, looks at them, keeps keys, and
// makes room for others.
class SharedRows : public testing::Test {
 protected:
  // The threads together fill the rows up to their limits, each several times.
  void run(std::uint64_t seed, int blocks) {
    RowPool::Member member;
    pool_.join(member);
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> kept;
    for (int block = 0; block < blocks; ++block) {
      {
        std::lock_guard at_work(member.at_work);
        expect_kept(member, kept);
        for (int i = 0; i < 400; ++i) learn(random() % kStates, member, kept);
      }
      pool_.drop_if_full();
      if (pool_.wants_room()) pool_.make_room();
      std::lock_guard at_work(member.at_work);
      if (kept.size() > 40) kept.erase(kept.begin(), kept.end() - 20);
      while (member.kept.keys().size() > kept.size()) drop_oldest(member);
    }
    pool_.leave(member);
  }

  RowPool pool_{Epoch{}};

 private:
  static constexpr std::uint64_t kStates = 700'000;  // more than are kept

  static std::uint64_t ip_of(std::uint64_t state) { return kBase + state * 16; }
  static std::uint8_t bits_of(std::uint64_t state) {
    return static_cast<std::uint8_t>(4 + 2 * (state % 126));
  }

  // A state's only row leads to the next state.
  void learn(std::uint64_t number, RowPool::Member& member, std::vector<std::uint64_t>& kept) {
    const StateKey state = pool_.key_of(member, ip_of(number), CodeMode::k64);
    if (state == 0) return;  // full
    const std::uint8_t bits = bits_of(number);
    std::uint64_t row = load_row(pool_.rows().outcomes()[Rows::slot_of(state, bits)]);
    if ((row & RowBits::kTagMask) != bits) row = find_elsewhere(state, bits);
    if (row == 0) row = fill(state, number, member);
    if (row == 0) return;
    ASSERT_EQ(pool_.rows().state(RowBits::next(row)).ip, ip_of(number + 1));
    const Beside& beside = pool_.rows().beside()[RowBits::effect(row)];
    ASSERT_EQ(beside.counts & Counts::kInsnMask, number % 1000);
    if (number % 100 != 0) return;
    member.kept.push(RowBits::next(row));
    kept.push_back(number + 1);
  }

  std::uint64_t find_elsewhere(StateKey state, std::uint8_t bits) {
    pool_.note_detours(1);
    return pool_.rows().find(state, bits);
  }

  std::uint64_t fill(StateKey state, std::uint64_t number, RowPool::Member& member) {
    std::lock_guard hold(pool_.lock());
    Rows& rows = pool_.rows();
    if (const std::uint64_t row = rows.find(state, bits_of(number))) return row;
    if (!rows.takes_more()) return 0;
    Transition transition;
    Rows::Part& part = member.part;
    if (!Rows::has_room(part, 0)) rows.extend(part);
    transition.next = rows.key_of(part, ip_of(number + 1), CodeMode::k64);
    transition.effect = rows.add_effect(part.effects, {}, {}, Counts::pack(number % 1000, 0, 0));
    rows.put(state, bits_of(number), transition.pack());
    pool_.note_crowd();
    return transition.pack();
  }

  void expect_kept(RowPool::Member& member, const std::vector<std::uint64_t>& kept) {
    std::span<StateKey> keys = member.kept.keys();
    ASSERT_LE(keys.size(), kept.size());  // of very many the oldest are forgotten
    for (std::size_t i = 0; i < keys.size(); ++i)
      ASSERT_EQ(pool_.rows().state(keys[i]).ip, ip_of(kept[kept.size() - keys.size() + i]));
  }

  static void drop_oldest(RowPool::Member& member) {
    std::span<StateKey> keys = member.kept.keys();
    std::copy(keys.begin() + 1, keys.end(), keys.begin());
    member.kept.pop();
  }
};

TEST_F(SharedRows, WhatEachKeepsNamesTheSamePlacesWhoeverMovesOrDropsThem) {
  const EffectBook* const first = pool_.rows().shared_book().get();
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    threads.emplace_back([this, seed] { run(seed, 700); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(pool_.rows().shared_book().get(), first);  // they were full, and dropped
}

TEST_F(SharedRows, AFlowThatLeavesNeedNotStop) {
  RowPool::Member idle;
  pool_.join(idle);
  std::unique_lock at_work(idle.at_work);
  pool_.leave(idle);
  run(7, 200);  // would wait for ever
}

// More states than a table begins with.
TEST(RowPool, WhatVeryManyKeepIsThereWhenRowsWereDropped) {
#ifdef __SANITIZE_THREAD__  // it knows of 64 locks at once
  constexpr std::uint64_t kMembers = 60, kReturns = 60;
#else
  constexpr std::uint64_t kMembers = 300, kReturns = 60;
#endif
  RowPool pool{Epoch{}};
  std::vector<RowPool::Member> members(kMembers);
  auto name = [&](RowPool::Member& member, std::uint64_t ip) {
    StateKey key = pool.key_of(member, ip, CodeMode::k64);
    if (key != 0) return key;
    pool.make_room();
    return pool.key_of(member, ip, CodeMode::k64);
  };
  for (std::uint64_t i = 0; i < kMembers; ++i) {
    pool.join(members[i]);
    for (std::uint64_t j = 0; j < kReturns; ++j)
      members[i].kept.push(name(members[i], kBase + i * kReturns + j));
  }
  for (std::uint64_t ip = 1ull << 40; !pool.is_full(); ++ip) name(members[0], ip);
  pool.drop_if_full();
  for (std::uint64_t i = 0; i < kMembers; ++i) {
    const std::span<StateKey> keys = members[i].kept.keys();
    ASSERT_EQ(keys.size(), kReturns);
    for (std::uint64_t j = 0; j < kReturns; ++j) {
      ASSERT_NE(keys[j], 0u);
      EXPECT_EQ(pool.rows().state(keys[j]).ip, kBase + i * kReturns + j);
    }
  }
  for (RowPool::Member& member : members) pool.leave(member);
}

}  // namespace
}  // namespace tailtrace::pt
