// Parquet files of flat columns of numbers, read without a database in between: any range of rows, from any thread.
//
// Pages are decoded when they are first needed, by whichever thread needs them: where one is busy with a column, another
// goes on to the next, so that threads that begin a row group together share its columns. Decoded pages are kept until
// no range that somebody waits for begins before their end. The values are given out as batches that point into pages.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "batch.h"
#include "parquet_pages.h"

namespace nb = nanobind;

namespace {

using namespace fw;

struct File {
  int number;
  int64_t size = 0;
  explicit File(const std::string &path) : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat about;
    if (number < 0) throw Refused("a file cannot be opened");
    if (fstat(number, &about) == 0) size = about.st_size;
  }
  File(const File &) = delete;
  ~File() {
    if (number >= 0) close(number);
  }
  void read(uint8_t *to, int64_t offset, int64_t count) const {
    while (count > 0) {
      const ssize_t got = pread(number, to, size_t(count), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Refused("a file ends early");
      to += got;
      offset += got;
      count -= got;
    }
  }
};

struct Place {  // of a column in a row group
  int64_t offset, size;
  Codec codec;
};

class Chunk {
 public:
  Chunk(Place place, Stored stored) : place_(place), stored_(stored), offset_(place.offset) {}

  std::mutex lock;

  // The pages with rows [first, last) of a group of `rows` rows. Those that end at `done` or before are given up; all that
  // follow are kept, though they may come before `first`: somebody waits for them.
  void pages(const File &file, Pool &pool, int64_t first, int64_t last, int64_t done, int64_t rows,
             std::vector<std::shared_ptr<Page>> &found) {
    while (!pages_.empty() && pages_.front()->first + pages_.front()->rows <= done) pages_.pop_front();
    if (first < (pages_.empty() ? row_ : pages_.front()->first)) {
      pages_.clear();
      offset_ = place_.offset;
      row_ = 0;
    }
    while (row_ < last) next(file, pool, std::min(first, done), rows);
    for (const auto &page : pages_)
      if (page->first < last && page->first + page->rows > first) found.push_back(page);
  }

 private:
  static constexpr int64_t most_of_header = 1 << 20;  // bytes

  // Goes one page further; pages that end at row `done` or before are passed over.
  void next(const File &file, Pool &pool, int64_t done, int64_t rows) {
    const int64_t end = place_.offset + place_.size;
    int64_t at = offset_;  // which moves only once all went well: another thread may come after one that failed
    const PageHeader header = page_header(file, at, end);
    if (header.compressed < 0 || header.uncompressed < 0 || header.compressed > end - at)
      throw Refused("the size of a page does not fit");
    const bool is_data = header.type == data_page || header.type == data_page_v2;
    if (is_data && (header.values < 0 || header.values > rows - row_)) throw Refused("a page has too many rows");
    if (header.type == dictionary_page && header.values < 0) throw Refused("the size of a page does not fit");
    const bool wanted = is_data ? header.values > 0 && row_ + header.values > done
                                : header.type == dictionary_page && !dictionary_.bytes;
    if (wanted) {
      Pool::Bytes raw = pool.take(size_t(header.compressed));
      file.read(raw.get(), at, header.compressed);
      PageDecoder decoder(pool, stored_, place_.codec);
      if (is_data) {
        auto page = decoder.data(header, raw, dictionary_);
        page->first = row_;
        pages_.push_back(std::move(page));
      } else {
        dictionary_ = decoder.dictionary(header, raw);
      }
    }
    offset_ = at + header.compressed;
    if (is_data) row_ += header.values;
  }

  // Reads the header at `at`, which is moved behind it.
  PageHeader page_header(const File &file, int64_t &at, int64_t end) {
    for (int64_t size = 128;; size *= 8) {
      const int64_t here = std::min(size, end - at);
      if (here <= 0) throw Refused("a column has too few rows");
      bytes_.resize(size_t(here));
      file.read(bytes_.data(), at, here);
      HeaderReader reader(bytes_.data(), bytes_.data() + here);
      try {
        const PageHeader header = reader.read();
        at += reader.end() - bytes_.data();
        return header;
      } catch (const OutOfBytes &) {
        if (here < size || size > most_of_header) throw Refused("a page header does not end");
      }
    }
  }

  const Place place_;
  const Stored stored_;
  int64_t offset_, row_ = 0;  // where the next page begins
  Dictionary dictionary_;
  std::deque<std::shared_ptr<Page>> pages_;
  std::vector<uint8_t> bytes_;
};

struct Group {
  File file;
  int64_t first, rows;
  std::deque<Chunk> chunks;
  Group(const std::string &path, int64_t first_row, int64_t n) : file(path), first(first_row), rows(n) {}
};

struct Numbers {  // of one column
  Kind kind;
  Stored stored;
  int64_t stride;
};

// Where ranges begin that are still to be read.
class Waiting {
 public:
  void add(int64_t start) {
    std::lock_guard<std::mutex> turn(lock_);
    starts_.insert(start);
  }
  void remove(int64_t start, int64_t stop) {
    std::lock_guard<std::mutex> turn(lock_);
    starts_.erase(starts_.find(start));
    last_ = stop;
  }
  int64_t done() {  // all before this row can be given up
    std::lock_guard<std::mutex> turn(lock_);
    return starts_.empty() ? last_ : *starts_.begin();
  }

 private:
  std::mutex lock_;
  std::multiset<int64_t> starts_;
  int64_t last_ = 0;
};

// A range of rows that somebody is going to read: as long as it exists, its pages are kept once they are decoded.
struct RowRange {
  std::shared_ptr<Waiting> waiting;
  int64_t start, stop;
  RowRange(std::shared_ptr<Waiting> all, int64_t from, int64_t to) : waiting(std::move(all)), start(from), stop(to) {
    waiting->add(start);
  }
  RowRange(const RowRange &) = delete;
  ~RowRange() { waiting->remove(start, stop); }
};

using Table = nb::ndarray<const int64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using List = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Reader {
 public:
  // `places`: for each row group and column the offset, size and compression; `columns`: the type and if cells may be missing.
  Reader(const std::vector<nb::bytes> &paths, List files, List rows, Table places,
         const std::vector<std::tuple<std::string, bool>> &columns) {
    const size_t groups = places.shape(0);
    if (files.shape(0) != groups || rows.shape(0) != groups || places.shape(1) != columns.size() || places.shape(2) != 3)
      throw nb::value_error("the sizes differ");
    for (const nb::bytes &path : paths) paths_.emplace_back(path.c_str(), path.size());
    for (const auto &[type, optional] : columns) columns_.push_back(numbers(type, optional));
    places_.assign(places.data(), places.data() + groups * columns.size() * 3);
    ends_.push_back(0);
    for (size_t g = 0; g < groups; ++g) {
      if (files(g) < 0 || files(g) >= int64_t(paths_.size())) throw nb::value_error("no such file");
      if (rows(g) < 0 || rows(g) > most_rows - ends_.back()) throw nb::value_error("no such number of rows");
      files_.push_back(files(g));
      ends_.push_back(ends_.back() + rows(g));
    }
  }

  std::unique_ptr<RowRange> range(int64_t start, int64_t stop) const {
    if (start < 0 || stop < start || stop > ends_.back()) throw nb::index_error("rows out of range");
    return std::make_unique<RowRange>(waiting_, start, stop);
  }

  // The rows of a range, as batches.
  std::vector<Batch> read(const RowRange &range) {
    nb::gil_scoped_release unlocked;
    std::vector<Batch> batches;
    const int64_t done = waiting_->done();
    size_t g = size_t(std::upper_bound(ends_.begin(), ends_.end(), range.start) - ends_.begin()) - 1;
    for (; g + 1 < ends_.size() && ends_[g] < range.stop; ++g) {
      if (ends_[g + 1] == ends_[g]) continue;
      const std::shared_ptr<Group> group = opened(g, done);
      const int64_t first = std::max(range.start, group->first) - group->first;
      const int64_t last = std::min(range.stop, group->first + group->rows) - group->first;
      read_group(*group, first, last, done - group->first, batches);
    }
    return batches;
  }

 private:
  static Numbers numbers(const std::string &type, bool optional) {
    const auto stored = [&](Kind kind, int width) { return Numbers{kind, {width, false, optional}, width}; };
    if (type == "FLOAT") return stored(Kind::f32, 4);
    if (type == "DOUBLE") return stored(Kind::f64, 8);
    if (type == "INTEGER") return stored(Kind::i32, 4);
    if (type == "UINTEGER") return stored(Kind::u32, 4);
    if (type == "BIGINT") return stored(Kind::i64, 8);
    if (type == "UBIGINT") return stored(Kind::u64, 8);
    if (type == "BOOLEAN") return {Kind::boolean, {1, true, optional}, 1};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__  // short integers are stored in four bytes, of which the first ones matter
    if (type == "TINYINT") return stored(Kind::i8, 4);
    if (type == "UTINYINT") return stored(Kind::u8, 4);
    if (type == "SMALLINT") return stored(Kind::i16, 4);
    if (type == "USMALLINT") return stored(Kind::u16, 4);
#endif
    throw nb::type_error("not a type of numbers");
  }

  std::shared_ptr<Group> opened(size_t g, int64_t done) {
    std::lock_guard<std::mutex> turn(lock_);
    while (!groups_.empty() && ends_[groups_.begin()->first + 1] <= done) groups_.erase(groups_.begin());
    std::shared_ptr<Group> &group = groups_[g];
    if (!group) {
      auto fresh = std::make_shared<Group>(paths_[size_t(files_[g])], ends_[g], ends_[g + 1] - ends_[g]);
      for (size_t j = 0; j < columns_.size(); ++j) {
        const int64_t *place = places_.data() + (g * columns_.size() + j) * 3;
        if (place[0] < 0 || place[1] < 0 || place[1] > fresh->file.size || place[0] > fresh->file.size - place[1] ||
            (place[2] != 0 && place[2] != 1))
          throw Refused("a column lies outside the file");
        fresh->chunks.emplace_back(Place{place[0], place[1], Codec(place[2])}, columns_[j].stored);
#if defined(POSIX_FADV_WILLNEED)
        // Columns are read in turns, which looks random: without this, a file that is not in memory is read page by page.
        posix_fadvise(fresh->file.number, place[0], std::min<int64_t>(place[1], 16 << 20), POSIX_FADV_WILLNEED);
#endif
      }
      group = std::move(fresh);
    }
    return group;
  }

  void read_group(Group &group, int64_t first, int64_t last, int64_t done, std::vector<Batch> &batches) {
    using Pages = std::vector<std::shared_ptr<Page>>;
    auto found = std::make_shared<std::vector<Pages>>(columns_.size());
    std::vector<size_t> busy;
    const auto decode = [&](size_t j) {
      group.chunks[j].pages(group.file, *pool_, first, last, done, group.rows, (*found)[j]);
    };
    for (size_t j = 0; j < columns_.size(); ++j) {
      std::unique_lock<std::mutex> turn(group.chunks[j].lock, std::try_to_lock);
      if (turn.owns_lock()) decode(j);
      else busy.push_back(j);
    }
    for (const size_t j : busy) {
      std::unique_lock<std::mutex> turn(group.chunks[j].lock);
      decode(j);
    }
    // A batch ends where a page of any column ends.
    std::set<int64_t> cuts{last};
    for (const Pages &pages : *found)
      for (const auto &page : pages) cuts.insert(std::min(last, page->first + page->rows));
    std::vector<size_t> at(columns_.size(), 0);
    for (const int64_t end : cuts) {
      Batch batch;
      batch.rows = end - first;
      batch.owner = found;
      for (size_t j = 0; j < columns_.size(); ++j) {
        const Pages &pages = (*found)[j];
        while (at[j] < pages.size() && pages[at[j]]->first + pages[at[j]]->rows <= first) ++at[j];
        if (at[j] == pages.size() || pages[at[j]]->first > first) throw Refused("a page is missing");
        const Page &page = *pages[at[j]];
        Column column;
        column.kind = columns_[j].kind;
        column.stride = columns_[j].stride;
        column.offset = first - page.first;
        column.data = page.data + column.offset * column.stride;
        column.validity = page.validity;
        batch.columns.push_back(column);
      }
      batches.push_back(std::move(batch));
      first = end;
    }
  }

  std::vector<std::string> paths_;
  static constexpr int64_t most_rows = int64_t(1) << 48;  // of a source: no place within a file overflows
  std::vector<int64_t> files_, ends_, places_;
  std::vector<Numbers> columns_;
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  std::mutex lock_;
  std::map<size_t, std::shared_ptr<Group>> groups_;
};

}  // namespace

void register_parquet(nb::module_ &m) {
  nb::class_<RowRange>(m, "RowRange");
  nb::class_<Reader>(m, "ParquetReader")
      .def(nb::init<const std::vector<nb::bytes> &, List, List, Table, const std::vector<std::tuple<std::string, bool>> &>(),
           nb::arg("paths"), nb::arg("files"), nb::arg("rows"), nb::arg("places"), nb::arg("columns"))
      .def("range", &Reader::range, nb::arg("start"), nb::arg("stop"))
      .def("read", &Reader::read, nb::arg("rows"));
}
