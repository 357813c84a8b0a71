#include "keel/telemetry/tags.h"

#include <deque>
#include <string>
#include <unordered_map>

#include "keel/base/mutex.h"

namespace keel::telemetry {
namespace {

class TagTable {
 public:
  TagTable() {
    Add("");
    Add("(other)");
  }

  TagId Intern(std::string_view name) {
    {
      const ReaderLock lock(mutex_);
      if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
      if (names_.size() >= kMaxTags) return TagId::kOther;
    }
    const WriterLock lock(mutex_);
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    if (names_.size() >= kMaxTags) return TagId::kOther;
    return Add(name);
  }

  std::string_view Name(TagId id) {
    const ReaderLock lock(mutex_);
    const auto index = static_cast<std::size_t>(id);
    return index < names_.size() ? std::string_view(names_[index]) : "(unknown)";
  }

 private:
  TagId Add(std::string_view name) KEEL_REQUIRES(mutex_) {
    const auto id = static_cast<TagId>(names_.size());
    ids_.emplace(names_.emplace_back(name), id);
    return id;
  }

  SharedMutex mutex_;
  std::deque<std::string> names_ KEEL_GUARDED_BY(mutex_);  // a deque: names stay where they are
  std::unordered_map<std::string_view, TagId> ids_ KEEL_GUARDED_BY(mutex_);
};

// Leaked, so that what runs at exit can still name its memory.
TagTable& Table() {
  static TagTable* const table = new TagTable;
  return *table;
}

__attribute__((tls_model("initial-exec"))) thread_local TagId current_tag = TagId::kNone;

}  // namespace

TagId InternTag(std::string_view name) { return Table().Intern(name); }
std::string_view TagName(TagId id) { return Table().Name(id); }

TagId CurrentTag() { return current_tag; }

ScopedTag::ScopedTag(TagId tag) : before_(current_tag) { current_tag = tag; }
ScopedTag::~ScopedTag() { current_tag = before_; }

}  // namespace keel::telemetry
