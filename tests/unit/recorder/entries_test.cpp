// Where functions are entered that are chosen as this program starts.
#include "plugin/recorder/entries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "decoder/symbols/deleted_files.h"

namespace tailtrace {
namespace {

TEST(Entries, OfAnIndirectFunctionItIsTheChosenOne) {
  const auto mappings = mappings_of(::getpid(), process_maps(::getpid()).value());
  void* library = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  for (const std::string name : {"memmove", "strchr", "memset"}) {
    const auto entries = entries_of("libc.so.6`" + name, ::getpid(), mappings);
    ASSERT_TRUE(entries) << entries.error().to_string();
    ASSERT_EQ(entries->size(), 1u) << name;
    EXPECT_EQ(entries->begin()->first.value,
              reinterpret_cast<std::uint64_t>(::dlsym(library, name.c_str())));
    const auto unread = entries_of("libc.so.6`" + name, 0, mappings);
    ASSERT_TRUE(unread) << unread.error().to_string();
    EXPECT_GT(unread->size(), 4u) << "more than there are debug registers";
  }
  ::dlclose(library);
}

}  // namespace
}  // namespace tailtrace
