// Names as GNU binutils' c++filt writes them, without what it adds: hashes of crates and types of
// constants. All but the last of each test are of rustc's own libraries.
#include "decoder/symbols/rust_name.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "decoder/symbols/demangle.h"

namespace tailtrace {
namespace {

TEST(RustName, IsAPath) {
  EXPECT_EQ(demangle("_RNvCs2V9h09aieGo_8punycode6decode"), "punycode::decode");
  EXPECT_EQ(
      demangle("_RNvXNtCsi4IsKQVxMg0_3std2ioNtB2_5GuardNtNtNtCs8NwYtU1Mohg_4core3ops4drop4Drop"
               "4drop"),
      "<std::io::Guard as core::ops::drop::Drop>::drop");
  EXPECT_EQ(demangle("_RNvNvMs_NtCsbEht8wFNRx7_5alloc3vecINtB6_3VecppE6remove13assert_failed"),
            "<alloc::vec::Vec<_, _>>::remove::assert_failed");
  EXPECT_EQ(
      demangle("_RNvYNvNtNtNtCsi4IsKQVxMg0_3std3sys2fs4unix4statINtNtNtCs8NwYtU1Mohg_4core3ops"
               "8function2FnTRNtNtNtBQ_3ffi5c_str4CStrEE4callBa_"),
      "<std::sys::fs::unix::stat as core::ops::function::Fn<(&core::ffi::c_str::CStr,)>>::"
      "call");
  EXPECT_EQ(demangle("_RNvCs2V9h09aieGo_8punycode6decode.llvm.1234567"), "punycode::decode");
}

TEST(RustName, OfWhatHasNoneHasANumber) {
  EXPECT_EQ(demangle("_RNCNvNtCsi4IsKQVxMg0_3std5alloc8rust_oom0B5_"),
            "std::alloc::rust_oom::{closure#0}");
  EXPECT_EQ(demangle("_RNSNvMs8_NtCs8NwYtU1Mohg_4core3numo15overflowing_div5reify"),
            "<u128>::overflowing_div::{shim:reify#0}");
  EXPECT_EQ(demangle("_RNCNvC1a1bs0_0"), "a::b::{closure#2}");
}

TEST(RustName, HasTypesAndConstants) {
  EXPECT_EQ(
      demangle("_RINvNtNtCsi4IsKQVxMg0_3std3sys9backtrace26___rust_end_short_backtraceNCNvNtB6_"
               "5alloc8rust_oom0zEB6_"),
      "std::sys::backtrace::__rust_end_short_backtrace::<std::alloc::rust_oom::{closure#0}, "
      "!>");
  EXPECT_EQ(demangle("_RNvXsp_NtCs8NwYtU1Mohg_4core3fmtPNtNtB7_3ffi6c_voidNtB5_5Debug3fmtB7_"),
            "<*const core::ffi::c_void as core::fmt::Debug>::fmt");
  EXPECT_EQ(
      demangle("_RNvMs3_NtCsbEht8wFNRx7_5alloc7raw_vecINtB5_6RawVecTOhFUKCBN_EuENtNtCsi4IsKQVx"
               "Mg0_3std5alloc6SystemE8grow_oneB13_"),
      "<alloc::raw_vec::RawVec<(*mut u8, unsafe extern \"C\" fn(*mut u8)), "
      "std::alloc::System>>::grow_one");
  EXPECT_EQ(
      demangle("_RNvXs1g_NtCs8NwYtU1Mohg_4core3fmtRINtNtNtCsgVdDwkt78Uu_4jiff4util8rangeint3ri"
               "8Knn19_Kn19_ENtB6_5Debug3fmtBD_"),
      "<&jiff::util::rangeint::ri8<-25, 25> as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangle("_RINvMs_NtCs1ZVfQdTwIpf_5regex8buildersNtB5_7Builder3newARej1_BS_EB7_"),
            "<regex::builders::Builder>::new::<[&str; 1], &str>");
  EXPECT_EQ(demangle("_RINvC1a1bKb1_Kc41_Kca_Kc7_Kce9_E"),
            "a::b::<true, 'A', '\\n', '\\u{7}', '\\u{e9}'>");
  // c++filt of binutils 2.40 loses the first digit; RFC 2603 has it.
  EXPECT_EQ(demangle("_RINvC1a1bKo123456789abcdef01_E"), "a::b::<0x123456789abcdef01>");
}

TEST(RustName, HasLifetimesWhereTheyAreBound) {
  EXPECT_EQ(demangle("_RNvXs1g_NtCs8NwYtU1Mohg_4core3fmtRDNtB6_5DebugEL_Bx_3fmtB8_"),
            "<&dyn core::fmt::Debug as core::fmt::Debug>::fmt");
  EXPECT_EQ(
      demangle("_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3Bo"
               "xDG_INtNtNtB4_3ops8function5FnMutTRL0_eEEp6OutputbEL_EECslKGqiwnqz1t_17rustc_"
               "codegen_ssa"),
      "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a> "
      "core::ops::function::FnMut<(&'a str,), Output = bool>>>");
  EXPECT_EQ(demangle("_RINvC1a1bFG0_RL1_eRL0_eEuE"), "a::b::<for<'a, 'b> fn(&'a str, &'b str)>");
}

TEST(RustName, OfTheOlderKindIsWithoutItsHash) {
  EXPECT_EQ(demangle("_ZN2cr4deep17h4a2af50f31ded056E"), "cr::deep");
  EXPECT_EQ(demangle("_ZN1r4main28_$u7b$$u7b$closure$u7d$$u7d$17h8d709b88ce22e821E"),
            "r::main::{{closure}}");
  EXPECT_EQ(demangle("_ZN5alloc4sync16Arc$LT$T$C$A$GT$9drop_slow17h49d9787a4c766e46E"),
            "alloc::sync::Arc<T,A>::drop_slow");
  EXPECT_EQ(
      demangle("_ZN49_$LT$a..B$u20$as$u20$c..D$LT$$u5b$u8$u5d$$GT$$GT$1f17h0123456789abcdefE"),
      "<a::B as c::D<[u8]>>::f");
  EXPECT_EQ(demangle("_ZN3foo4h123E"), "foo::h123");
}

TEST(RustName, ThatIsNoneStaysAsItIs) {
  for (const char* name :
       {"_R", "_RN", "_RNvC1a", "_RNvC1a9b", "_RNvC1a1bX", "_RNvB_1b", "_RNvC1a1bB9_", "_RIC1aKE",
        "_RINvC1a1bKb2_E", "_RINvC1a1bRL0_eE", "_RINvC1a1bFGzzzzzzzzzzzzzz_uEuE",
        "_RC99999999999999", "_Random_function", "_R1NvC1a1b"})
    EXPECT_EQ(demangle(name), name);
}

// As base 62 with a sign behind it: 0 is "_", 1 is "0_".
std::string reference_to(std::size_t place) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits;
  for (std::size_t n = place - 1; digits.empty() || n != 0; n /= kDigits.size())
    digits.insert(digits.begin(), kDigits[n % kDigits.size()]);
  return "B" + digits + "_";
}

// Each tuple is twice the one before.
TEST(RustName, ThatUnfoldsFarStaysAsItIs) {
  std::string types = "TuuE";
  const std::string begin = "INvC1a1b";
  std::size_t newest = begin.size();
  for (int doublings = 1; doublings <= 40; ++doublings) {
    const std::string before = reference_to(newest);
    newest = begin.size() + types.size();
    types += "T" + before + before + "E";
    const std::string name = "_R" + begin + types + "E";
    EXPECT_EQ(demangle(name) != name, doublings < 12) << doublings;
  }
  EXPECT_FALSE(rust_v0_name("_R" + std::string(100'000, 'N')));
  EXPECT_FALSE(rust_v0_name("_RINvC1a1b" + std::string(100'000, 'R')));
}

// Whatever stands there.
TEST(RustName, OfAnyBytesIsReadToItsEnd) {
  const std::string name =
      "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG_"
      "INtNtNtB4_"
      "3ops8function5FnMutTRL0_eARej1_FUKCBN_EuKb1_NCNvC1a1bs0_0EEp6OutputbEL_EE";
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 20'000; ++turn) {
    std::string mutated = name;
    for (std::uint64_t changes = random() % 4 + 1; changes != 0; --changes) {
      const std::size_t at = 2 + random() % (mutated.size() - 2);
      if (random() % 2 == 0)
        mutated[at] = name[random() % name.size()];
      else
        mutated.erase(at, random() % 3);
    }
    EXPECT_FALSE(demangle(mutated).empty());
  }
}

}  // namespace
}  // namespace tailtrace
