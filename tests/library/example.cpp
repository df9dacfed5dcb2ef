// What did a process do last? Compiled against the installed library, see CMakeLists.txt.
//   example [PID]     a process that is stopped and goes on; without PID the errors are shown
#include <cstdio>
#include <cstdlib>
#include <tailtrace/tailtrace.hpp>

int main(int argc, char** argv) {
  using namespace tailtrace_api;
  try {
    Provider provider(Provider::Options{.buffer_bytes = 1 << 20});
    int pid = argc > 1 ? std::atoi(argv[1]) : 0x7ffffff0;
    provider.start_process(pid);
    for (const std::string& remark : provider.remarks()) std::printf("note: %s\n", remark.c_str());
    std::puts("recording; press Enter when it is stopped again");
    std::getchar();
    Snapshot snapshot = provider.snapshot(pid, pid);
    for (std::int64_t i = std::min<std::int64_t>(10, snapshot.size()); i > 0; --i) {
      Item item = snapshot.at(-i);
      std::printf("%8llu  %#llx  %s\n", static_cast<unsigned long long>(item.number),
                  static_cast<unsigned long long>(item.address), item.text.c_str());
    }
  } catch (const Failure& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return failure.code();
  }
}
