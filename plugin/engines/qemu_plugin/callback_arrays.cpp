#include "plugin/engines/qemu_plugin/callback_arrays.h"

#include <dlfcn.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plugin/engines/qemu_plugin/imports.h"

namespace tailtrace {
namespace {

// GLib's GArray and gboolean.
using Array = void;
using Bool = int;

struct Glib {
  Array* (*sized_new)(Bool, Bool, unsigned, unsigned);
  char* (*free)(Array*, Bool);
  Array* (*set_size)(Array*, unsigned);
  unsigned (*element_size)(Array*);
};
Glib g_glib{};

std::mutex g_lock;
std::unordered_set<Array*> g_plain;  // made here, and not of the kind with zeros
std::unordered_map<unsigned, std::vector<Array*>> g_spare;  // by the size of an element

Array* sized_new(Bool ends_with_zero, Bool is_cleared, unsigned element_bytes, unsigned count) {
  if (ends_with_zero != 0 || is_cleared != 0)
    return g_glib.sized_new(ends_with_zero, is_cleared, element_bytes, count);
  std::lock_guard lock(g_lock);
  auto& spare = g_spare[element_bytes];
  if (spare.empty()) return *g_plain.insert(g_glib.sized_new(0, 0, element_bytes, count)).first;
  Array* array = spare.back();
  spare.pop_back();
  return array;
}

// The caller keeps the elements unless `with_elements`.
char* free_array(Array* array, Bool with_elements) {
  std::lock_guard lock(g_lock);
  if (with_elements == 0 || !g_plain.contains(array)) {
    g_plain.erase(array);
    return g_glib.free(array, with_elements);
  }
  g_glib.set_size(array, 0);
  g_spare[g_glib.element_size(array)].push_back(array);
  return nullptr;
}

template <class Function>
bool find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

void keep_callback_arrays() {
  const bool has_all = find(g_glib.sized_new, "g_array_sized_new") &&
                       find(g_glib.free, "g_array_free") &&
                       find(g_glib.set_size, "g_array_set_size") &&
                       find(g_glib.element_size, "g_array_get_element_size");
  if (!has_all) return;
  // In this order: arrays that are not known are freed as ever.
  if (replace_import("g_array_free", reinterpret_cast<void*>(&free_array)))
    replace_import("g_array_sized_new", reinterpret_cast<void*>(&sized_new));
}

}  // namespace tailtrace
