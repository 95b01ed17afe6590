#pragma once
#include <thrust/algorithms_of_harness.h>
#include <initializer_list>
#include <vector>
namespace thrust {
template <typename T>
class device_vector {
 public:
  using value_type = T;
  using reference = T&;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = size_t;
  explicit device_vector(size_t count = 0, const T& value = T()) : size_(count) {
    data_ = count ? static_cast<T*>(::harness_emulator::allocate_device(count * sizeof(T))) : nullptr;
    std::fill(begin(), end(), value);
  }
  template <typename I, typename = typename std::iterator_traits<I>::value_type>
  device_vector(I first, I last) : device_vector(size_t(std::distance(first, last))) { std::copy(first, last, begin()); }
  device_vector(const device_vector& other) : device_vector(other.begin(), other.end()) {}
  device_vector& operator=(const device_vector& other) {
    device_vector copy(other);
    std::swap(data_, copy.data_);
    std::swap(size_, copy.size_);
    return *this;
  }
  device_vector(const std::vector<T>& other) : device_vector(other.begin(), other.end()) {}
  device_vector(std::initializer_list<T> all) : device_vector(all.begin(), all.end()) {}
  void clear() { resize(0); }
  void push_back(const T& value) { resize(size_ + 1, value); }
  template <typename I, typename = typename std::iterator_traits<I>::value_type>
  void assign(I first, I last) { *this = device_vector(first, last); }
  T front() const { return data_[0]; }
  T back() const { return data_[size_ - 1]; }
  void resize(size_t count, const T& value = T()) {
    device_vector larger(count, value);
    std::copy(begin(), begin() + std::min(count, size_), larger.begin());
    std::swap(data_, larger.data_);
    std::swap(size_, larger.size_);
  }
  ~device_vector() { ::harness_emulator::release_device(data_); }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_;
  size_t size_;
};
template <typename T>
class host_vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  host_vector(const std::vector<T>& other) : std::vector<T>(other) {}
  host_vector(const device_vector<T>& other) : std::vector<T>(other.begin(), other.end()) {}
};
}
