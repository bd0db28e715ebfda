; Forms, each with what it shows behind an arrow.

; Data.
42                                      ;=> 42
2.5                                     ;=> 2.5
#t                                      ;=> #t
#f                                      ;=> #f
"a \"quoted\" text"                     ;=> "a \"quoted\" text"
'symbol                                 ;=> symbol
'(1 2.5 "three" four (5))               ;=> (1 2.5 "three" four (5))
'()                                     ;=> ()
(list 1 2 (list 3 4))                   ;=> (1 2 (3 4))
(cons 1 2)                              ;=> (1 . 2)

; Numbers.
(+ 1 2)                                 ;=> 3
(+ 1 2 3 4)                             ;=> 10
(- 7)                                   ;=> -7
(* 2 2.5)                               ;=> 5.0
(quotient 17 5)                         ;=> 3
(remainder 17 5)                        ;=> 2
(< 1 2)                                 ;=> #t
(>= 1 2)                                ;=> #f
(= 2 2.0)                               ;=> #t

; Choices.
(if '() 1 2)                            ;=> 1
(if #f 1 2)                             ;=> 2
(cond ((< 3 2) 'less) ((= 3 2) 'same) (else 'more)) ;=> more
(and 1 2 3)                             ;=> 3
(and 1 #f 3)                            ;=> #f
(or #f 2 3)                             ;=> 2
(let ((x 2) (y 3)) (* x y))             ;=> 6
(let* ((x 2) (y (+ x 1))) (* x y))      ;=> 6

; Functions.
(define (square x) (* x x))
(square 12)                             ;=> 144
(define (fact n) (if (= n 0) 1 (* n (fact (- n 1)))))
(fact 10)                               ;=> 3628800
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(fib 20)                                ;=> 6765

; Calls of themselves in tail position are loops: no stack is used.
(define (count n sum) (if (= n 0) sum (count (- n 1) (+ sum n))))
(count 1000000 0)                       ;=> 500000500000
(let loop ((i 0) (odd '())) (if (= i 10) odd (loop (+ i 1) (if (odd? i) (cons i odd) odd)))) ;=> (9 7 5 3 1)

; Functions as values, across definitions.
(define (compose f g) (lambda (x) (f (g x))))
((compose square (lambda (x) (+ x 1))) 4) ;=> 25
(define (call-with-three f) (f 3))
(call-with-three square)                ;=> 9
(call-with-three (lambda (x) (list x x))) ;=> (3 3)
(map square '(1 2 3))                   ;=> (1 4 9)
(map (compose square square) '(1 2 3))  ;=> (1 16 81)
(filter even? '(1 2 3 4 5 6))           ;=> (2 4 6)
(fold + 0 '(1 2 3 4 5))                 ;=> 15
(map car '((1 2) (3 4)))                ;=> (1 3)
square                                  ;=> #<procedure>
(procedure? (lambda (x) x))             ;=> #t

; A function may be called before it is defined.
(define (uses-later x) (later x 1))
(uses-later 1)                          ;=> error: MethodError: no method matching @later(::Int64, ::Int64)
(define (later a b) (+ a b))
(uses-later 1)                          ;=> 2

; Closures share what they assign.
(define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(define one (counter))
(define two (counter))
(one)                                   ;=> 1
(one)                                   ;=> 2
(two)                                   ;=> 1
(define (account balance)
  (define (deposit x) (set! balance (+ balance x)) balance)
  (define (show) balance)
  (lambda (what x) (if (eq? what 'deposit) (deposit x) (show))))
(define mine (account 100))
(mine 'deposit 50)                      ;=> 150
(mine 'show 0)                          ;=> 150
(define (three-adders) (let loop ((i 0) (out '())) (if (= i 3) (reverse out) (loop (+ i 1) (cons (lambda (x) (+ x i)) out)))))
(map (lambda (f) (f 10)) (three-adders)) ;=> (10 11 12)
(letrec ((even (lambda (n) (if (= n 0) #t (odd (- n 1))))) (odd (lambda (n) (if (= n 0) #f (even (- n 1)))))) (even 100)) ;=> #t

; Variables.
(define total 1)
(define (add-to-total x) (set! total (+ total x)) total)
(add-to-total 5)                        ;=> 6
total                                   ;=> 6
(define total 100)
(add-to-total 5)                        ;=> 105

; A definition takes the place of an older one.
(define (rate x) (* x 2))
(define (price x) (+ (rate x) 1))
(price 10)                              ;=> 21
(define (rate x) (* x 3))
(price 10)                              ;=> 31
(define (rate x y) (* x y))
(price 10)                              ;=> error: MethodError: no method matching @rate(::Int64)
(define (rate x) x)
(price 10)                              ;=> 11

; A frame that runs while a function is defined again continues with the old one.
(define (look) 1)
(define (spin i sum) (if (= i 9) sum (begin (when (= i 4) (eval "(define (look) 100)")) (spin (+ i 1) (+ sum (look))))))
(spin 0 0)                              ;=> 9
(spin 0 0)                              ;=> 900

; Lists that change, and strings.
(define pair (cons 1 2))
(set-cdr! pair '(5))
pair                                    ;=> (1 5)
(append '(1 2) '(3))                    ;=> (1 2 3)
(length '(a b c))                       ;=> 3
(list-ref '(a b c) 1)                   ;=> b
(equal? '(1 (2 "x")) (list 1 (list 2 "x"))) ;=> #t
(string-append "a" "b" "c")             ;=> "abc"
(string-length "größe")                 ;=> 5
(string-append "n = " (number->string 7)) ;=> "n = 7"
(begin (display "shown ") (display '(1 "two")) (newline)) ;=> shown (1 two)

; Errors are values of the host, and the prompt continues.
(car 5)                                 ;=> error: car: no pair: 5
(error "no such thing:" '(a b))         ;=> error: no such thing: (a b)
(undefined-function 1)                  ;=> error: MethodError: no method matching @undefined-function(::Int64)
undefined-variable                      ;=> error: there is no `undefined-variable`
(square 1 2)                            ;=> error: MethodError: no method matching @square(::Int64, ::Int64)
(5 6)                                   ;=> error: MethodError: no method matching (::Int64)(::Int64)
(define (forever n) (+ 1 (forever n)))
(forever 1)                             ;=> error: StackOverflowError:
(quotient 1 0)                          ;=> error: DivideError: integer division error
(string-length 5)                       ;=> error: no string: 5
(if)                                    ;=> error: if: wrong syntax
(+ 1 1)                                 ;=> 2
